-- leave: a caller that has given up (time-out, abort, close) takes back whatever its request became.
--
-- Queued: it is removed, and if it stood at the head, wanting more than was free, those behind it may fit. Granted meanwhile, by a
-- message that crossed its leaving: the hold is ended, so a grant after a cancel is never kept (I4, I7). Neither: nothing changes,
-- and it may be repeated.
--
-- KEYS
--   lock      HASH    the lock
-- ARGV
--   id        string  the waiter, and the hold it may have become
--   entry?    string  its claim, if it may have joined the queue
-- Replies
--   left        it was queued
--   returned    it was a holder
--   unfinished  either; who follows is found by lua/permits/sweep.lua
--   absent      it was neither
-- Invariants: I4 I5 I7
-- include: permits
-- include: deadlines

-- include: queues

local outcome = 'absent'
if entry then
  -- include: line { claim = entry }
  redis.call('ZREM', expiry, id)
  if redis.call('ZREM', line, entry) == 1 then outcome = 'left' end
end
if record then
  outcome = 'returned'
  -- include: give-up
end
-- The usual case stands before everything that it does not need.
if outcome == 'absent' then return outcome end

-- include: time
-- include: vacate { by = nil, mine = nil, asks = nil }
return unfinished and 'unfinished' or outcome
