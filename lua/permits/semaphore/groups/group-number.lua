-- group-number: the number of a group, under which its waiters stand in the queue. A group that has none gets the next one.
--
-- If `shares` was lost, the numbers of the waiters in the queue say nothing any more, so the queue is dropped, too. The
-- heartbeats of these waiters bring them back, in the order of their tickets.
--
-- Takes
--   group      string   the group
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
-- Changes
--   grouped    boolean  false: the waiters without a group have to be settled anew
-- Gives
--   number     string   its number
local known = redis.call('HMGET', shares, 'n' .. group, 'count')
number = known[1]
if not number then
  if not known[2] then
    redis.call('UNLINK', waiting, turns)
    grouped = false
  end
  number = string.format('%.0f', (known[2] or 0) + 1)
  redis.call('HSET', shares, 'n' .. group, number, 'count', number)
end
