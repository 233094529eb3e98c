-- may: whether a caller may be granted its permits now: enough of them are free, its group has room, and nobody is first.
-- Waiters of groups that are full are passed.
--
-- Takes
--   claim      string   the caller's claim
--   taken      number   what all holds take together
--   wants      string   how many permits the caller wants
--   of         string   how many the semaphore has, by the caller's claim
--   queued?    ms       the time until which the queue's keys live
--   grouped    boolean  the semaphore has groups; if not, its waiters are not in `turns` yet
--   lock       HASH    the lock
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
-- Gives
--   pending    boolean  permits are free, and a group that is not full has a waiter, who may be about to be admitted or passed over
--   may        boolean  the caller may be granted them
pending, may = false, taken + wants <= of + 0
if queued and taken < of + 0 then
  -- include: next
  pending = not grouped or head
  may = may and not pending
end
if may then
  -- include: group
  if queued then
    local number = redis.call('HMGET', shares, 'n' .. group)[1]
    may = not number or redis.call('ZCOUNT', waiting, number, number) == 0
  end
  if may and limit ~= '' then
    may = (redis.call('HMGET', lock, ':' .. group)[1] or 0) + wants <= limit + 0
  end
end
