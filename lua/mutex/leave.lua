-- leave: a caller that has given up (time-out, abort, close) takes back whatever its request became.
--
-- Queued: it is removed. Granted meanwhile, by a message that crossed its leaving: the hold is ended and the lock goes
-- on to the next, so a grant after a cancel is never kept (I4, I7). Neither: nothing changes, and it may be repeated.
--
-- KEYS
--   lock      HASH    the lock
-- ARGV
--   id        string  the waiter, and the hold it may have become
--   entry?    string  its claim, if it may have joined the queue
-- Replies
--   left        it was queued
--   returned    it was the holder; the lock has gone on
--   unfinished  the same; who follows is found by lua/mutex/sweep.lua, because so many waiters were passed over
--   absent      it was neither
-- Invariants: I4 I5 I7
-- include: state
-- include: holder
-- include: keys

local outcome = 'absent'
-- Its deadline stays where it is not in the queue: what follows may still need that key (lua/shared/promote.lua).
if entry and redis.call('ZREM', queue, entry) == 1 then
  redis.call('ZREM', expiry, id)
  outcome = 'left'
end
-- The usual case stands before everything that it does not need.
if hold ~= id and not holds then return outcome end

-- include: time
local ends
-- include: drop { mine = nil, used = nil }
if unfinished then return 'unfinished' end
return dropped and 'returned' or outcome
