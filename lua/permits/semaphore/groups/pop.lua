-- pop: removes a waiter from its queue. If the waiter has a group, its ticket is also in the HASH `shares`, so that a
-- caller that leaves is found without its ticket.
--
-- Takes
--   claim      string   the waiter's claim
--   ticket     string   its ticket
--   group      string   its group
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
-- Gives
--   gone       boolean  the waiter was queued. An entry without a ticket in `shares` is left over from a loss of data
if group == '' then
  gone = redis.call('ZREM', queue, claim) == 1
else
  redis.call('ZREM', waiting, ticket .. claim)
  gone = redis.call('HDEL', shares, 't' .. claim:sub(1, ID_END)) == 1
end
