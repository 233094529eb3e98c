-- told: whether a waiter needs no message: the reply of this script tells its client, of those in the queue of the one who asks.
--
-- Takes
--   claim  string  of the waiter
--   mine?  string  how ids begin that need none; absent: all need one
--   asks?  ZSET    the queue of the one who asks
--   lines  list    the queues of the fair waiters
-- Gives
--   told   boolean  it needs none
told = mine and claim:sub(1, #mine) == mine
if told then
  -- include: line
  told = line == asks
end
