-- mode: notices whether the semaphore has groups. If it has none, and the call brings none, this script ends. The client
-- then calls the script for a semaphore without groups, which costs less.
--
-- While a semaphore has groups, `queued` in its hash is not the time alone, but MARK and the time, if anybody is queued.
-- So each script of a semaphore without groups notices the groups from what it reads anyway
-- (lua/permits/semaphore/mode.lua).
--
-- Takes
--   call       list    the claims of this call
--   mark?      string  see lua/shared/permits.lua
--   clock      µs      the last ticket or token
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
--   none?      string  a key that never exists (lua/shared/settled.lua)
-- Changes
--   queued?    ms      the time until which the queue's keys live
-- Gives
--   grouped    boolean  the semaphore has groups already
--   rival?     string   "<limit>;<weight>", what was known of the group of the call before
-- Replies
--   plain   nothing has changed, because neither the semaphore nor the call has a group
-- Constants
--   NO_LIMIT = '-'  stands for the limit of a group that may have all permits
--   MARK = 'g'      the first character of `queued` while the semaphore has groups
-- include: settled
grouped = mark and not queued
local brings = false
for _, each in ipairs(call) do
  brings = brings or each:find(GROUPED, TERMS_AT)
end
if brings and #call == 1 then
  -- include: group { claim = call[1] }
  local said = redis.call('HMGET', shares, 'l' .. group, 'w' .. group)
  rival = said[1] and said[1] .. ';' .. (said[2] or 1)
end
if grouped then
  queued = tonumber(mark:sub(2))
else
  if not brings then return 'plain' end
  -- If the lock's key was lost, the first call after that may have been one without a group, which does not know `waiting`.
  local left = redis.call('EXISTS', waiting) + (clock == NO_CLOCK and redis.call('EXISTS', queue) or 0)
  if left > 0 and not queued then queued = LIFE_UNKNOWN end
end
