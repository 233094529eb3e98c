-- position: the place of a waiter among the waiters of its group. Its place in the order of all grants depends on the
-- turns of all groups, so only `inspect` says it.
--
-- Takes
--   claim      string  the waiter's claim
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
-- Gives
--   position   number  counted from 1
-- include: group
if group == '' then
  position = (redis.call('ZRANK', queue, claim) or 0) + 1
else
  local ticket = redis.call('HMGET', shares, 't' .. claim:sub(1, ID_END))[1] or ''
  position = redis.call('ZLEXCOUNT', waiting, '[' .. group .. ';', '(' .. group .. ';' .. ticket .. claim) + 1
end
