-- relinquish: the permits of a retained hold (lua/permits/release.lua) stay taken, also in its group. So if the group is
-- full, its first waiter is told when they become free. Otherwise, lua/permits/semaphore/groups/tell.lua tells it.
--
-- Takes
--   record     string  the record of the hold
--   till       ms      the end of the `minHold`
--   lock       HASH    the lock
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
--   now        ms      the server's time
local claim = record:sub(CLAIM_AT)
-- include: group
local number = redis.call('HMGET', shares, 'n' .. group)[1] or nil
-- include: first
if leader then
  redis.pcall('PUBLISH', INBOX .. leader:sub(1, CLIENT_END), 'ends ' .. till - now .. ' ' .. lock)
end
