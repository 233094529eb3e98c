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
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
-- Gives
--   may        boolean  the caller may be granted them
may = taken + wants <= of + 0
if may and queued then
  may = grouped and not redis.call('ZRANGEBYSCORE', turns, 0, '+inf', 'LIMIT', 0, 1)[1]
end
if may then
  -- include: group
  -- include: first
  may = not queued or not leader
  if may and limit ~= '' then
    may = (redis.call('HMGET', lock, ':' .. group)[1] or 0) + wants <= limit + 0
  end
end
