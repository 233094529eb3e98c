-- release: end one hold, and admit the waiters that fit now.
--
-- A release ends only the hold whose id it has (I5). So a release that is late, repeated or from another client finds
-- no such hold, and changes nothing. If a hold's lease has lapsed but the hold is still recorded, this call ends the
-- hold. The reply need not say that the lease had lapsed, because the caller knows its deadline.
--
-- KEYS
--   lock        HASH    the lock
--   deadlines   ZSET    see lua/shared/live.lua
--   queue?      ZSET    fair waiters by ticket
--   readers?    ZSET    only of a read-write lock: the readers among them, who have a queue of their own
--   waiting?    ZSET    only of a semaphore with groups: the waiters of the groups (lua/permits/semaphore/groups/queues.lua)
--   turns?      ZSET    only of a semaphore with groups: the groups whose turn may come (lua/permits/semaphore/groups/settle.lua)
--   shares?     HASH    only of a semaphore with groups: what the groups have had (lua/permits/semaphore/groups/settle.lua)
--   none?       string  only in a cluster: see lua/shared/settled.lua
-- ARGV
--   id          string  the hold to end; the reply contains the grants to waiters of the same client in the same queue
-- Replies
--   released    how many subscribers received the message that permits are free; 0 also if no message was sent, for example because waiters of the fair queue got the permits
--   passed      id, token, ttl ms for each waiter of the same client, in the same queue, that is now a holder
--   unfinished  the same values as `passed`, or none. One call may admit only so many waiters; lua/permits/sweep.lua admits the others
--   ended       the hold did not exist
-- Invariants: I2 I3 I4 I5 I7
-- include: permits
-- include: mode { call = {} }
if not record then return 'ended' end
local client = id:sub(1, CLIENT_END)

-- Fast path: the usual case returns here, before the work that only rarer cases need.
if not queued then
  -- include: give-up
  -- include: opened
  if taken == 0 then
    -- include: shorten
  end
  return 'released ' .. heard
end

-- include: queues
-- include: time
-- include: give-up
-- include: line { claim = record:sub(CLAIM_AT) }
-- include: vacate { by = client, mine = client, asks = line }
local passed = ''
for i = 1, #admitted, 2 do
  local claim = admitted[i]
  -- include: told { mine = client, asks = line }
  if told then
    passed = passed .. ' ' .. claim:sub(1, ID_END) .. ' ' .. admitted[i + 1] .. ' ' .. claim:match(LEASE, TERMS_AT)
  end
end
if unfinished then return 'unfinished' .. passed end
if passed ~= '' then return 'passed' .. passed end
return 'released ' .. heard
