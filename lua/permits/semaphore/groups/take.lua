-- take: counts the permits of a caller that is granted them at once. Such a grant counts as a turn of its group.
--
-- Takes
--   claim      string   the caller's claim
--   wants      string   how many permits
--   queued?    ms       the time until which the queue's keys live
--   grouped    boolean  the semaphore is marked as one with groups
--   lock       HASH    the lock
--   deadlines  ZSET    see lua/shared/live.lua
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
--   now        ms      the server's time
-- Changes
--   taken      number   includes these permits
taken = taken + wants
-- include: group
if group ~= '' then redis.call('HSET', shares, 'l' .. group, limit == '' and NO_LIMIT or limit) end
-- include: settle { adds = wants + 0, refund = false, given = weight }
if not grouped then redis.call('HSET', lock, 'queued', MARK .. (queued or '')) end
local expiry = math.max(queued or 0, now + MEMORY)
redis.call('PEXPIREAT', turns, expiry)
redis.call('PEXPIREAT', shares, expiry)
