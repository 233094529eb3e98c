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
  local known = redis.call('HMGET', shares, 't' .. claim:sub(1, ID_END), 'n' .. group)
  local rank = known[1] and redis.call('ZRANK', waiting, known[1] .. claim)
  position = rank and rank - redis.call('ZCOUNT', waiting, '-inf', '(' .. known[2]) + 1 or 1
end
