-- leave: a caller that has given up (time-out, abort, close) takes its request back.
--
-- If the caller is queued, it is removed from the queue. If it was the first waiter and wanted more permits than are
-- free, the next waiters may now fit. If the caller was granted permits before this call ran, its hold ends. So a grant
-- after a cancel is never kept (I4, I7). If the caller is neither queued nor a holder, nothing changes, so the call may
-- be repeated.
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
--   id        string  the caller's id, as a waiter and as a holder
--   entry?    string  the caller's claim; absent: the caller has not tried to join the queue
-- Replies
--   left        the caller was queued
--   returned    the caller was a holder
--   unfinished  the caller was queued or a holder, and is removed; lua/permits/sweep.lua admits the remaining waiters
--   absent      the caller was neither queued nor a holder
-- Invariants: I4 I5 I7
-- include: permits
-- include: mode { call = { entry } }

-- include: queues

local outcome = 'absent'
if entry then
  -- include: line { claim = entry }
  redis.call('ZREM', deadlines, id)
  -- include: quit { claim = entry }
  if gone then outcome = 'left' end
end
if record then
  outcome = 'returned'
  -- include: give-up { sampled = nil }
end
-- Fast path: the usual case returns here, before the work that only rarer cases need.
if outcome == 'absent' then return outcome end

-- include: time
-- include: vacate { by = nil, mine = nil, asks = nil }
return unfinished and 'unfinished' or outcome
