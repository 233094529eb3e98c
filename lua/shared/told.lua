-- told: whether a waiter needs no message, because this script's reply has its grant. This is so for the waiters of the
-- calling client that are in the same queue as the request's own claim.
--
-- Takes
--   claim  string   the waiter's claim
--   mine?  string   the prefix of ids that need no message; absent: all waiters need one
--   asks?  ZSET     the queue of the request's own claim
--   lines  list     the queues of the fair waiters
-- Gives
--   told   boolean  the waiter needs no message
told = mine and claim:sub(1, #mine) == mine
if told then
  -- include: line
  told = line == asks
end
