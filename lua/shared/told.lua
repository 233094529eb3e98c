-- told: whether a waiter needs no message, because the reply of this script reports its grant. The reply reports grants
-- only to waiters of the calling client, and only if they are in the same queue as the claim of the call itself.
--
-- Takes
--   claim  string   the waiter's claim
--   mine?  string   the prefix of ids that need no message; absent: all waiters need one
--   asks?  ZSET     the queue to which the claim of this call belongs
--   lines  ZSETs   the queues of the fair waiters
-- Gives
--   told   boolean  the waiter needs no message
told = mine and claim:sub(1, #mine) == mine
if told then
  -- include: line
  told = line == asks
end
