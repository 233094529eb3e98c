-- leave: a caller that has given up (time-out, abort, close) takes its request back.
--
-- If the caller is queued, it is removed from the queue. If it was the first waiter and wanted more permits than are
-- free, the next waiters may now fit. If the caller was granted permits before this call ran, its hold ends. So a grant
-- after a cancel is never kept (I4, I7). If the caller is neither queued nor a holder, nothing changes, so the call may
-- be repeated.
--
-- KEYS
--   lock        HASH    the lock
--   deadlines   ZSET    the ends of holds, and waiters' deadlines (lua/README.md)
--   queue?      ZSET    fair waiters by ticket
--   readers?    ZSET    only of a read-write lock: the readers among them, who have a queue of their own
--   waiting?    ZSET    only of a semaphore: the waiters with a group (lua/groups.lua)
--   turns?      ZSET    only of a semaphore: the groups whose turn may come
--   shares?     HASH    only of a semaphore: what the groups have had
--   none?       string  only in a cluster: a key that never exists (lua/README.md)
-- ARGV
--   id        string  the caller's id, as a waiter and as a holder
--   entry?    string  the caller's claim; absent: the caller has not tried to join the queue
-- Replies
--   left        the caller was queued
--   returned    the caller was a holder
--   unfinished  the caller was queued or a holder, and is removed; lua/permits/sweep.lua admits the remaining waiters
--   absent      the caller was neither queued nor a holder
-- Invariants: I4 I5 I7

-- functions
local fields = redis.call('HMGET', lock, 'taken', 'clock', 'queued', 'keep', 'pace', id)
local mark, record = fields[3], fields[6]
--[[cluster
if not none then return redis.error_reply('ERR non local key') end
--]]
local s = permitsOf(lock, queue, deadlines, readers, fields, readTime())
if turns and (mark and not s.queued or entry and entry:find(GROUPED, TERMS_AT)) then
  -- functions
  withGroups(s, waiting, turns, shares, mark)
end

local outcome = 'absent'
if entry then
  redis.call('ZREM', deadlines, id)
  if quit(s, entry) then outcome = 'left' end
end
if record then
  -- functions
  outcome = 'returned'
  giveUp(s, id, record, nil)
end
-- Fast path: the usual case returns here, before the work that only rarer cases need.
if outcome == 'absent' then return outcome end

-- functions
local _, unfinished = vacate(s, mark, nil, nil, nil)
return unfinished and 'unfinished' or outcome
