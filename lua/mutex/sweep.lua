-- sweep: find who follows a holder that has ended, where an earlier call has passed over as many dead waiters as one call may.
--
-- Bounded work for each call keeps the server free for others. Between two of them the lock has no holder, and a queue: nobody else
-- is granted it, because whoever asks goes on where the last call has ended. So a caller that dies in between costs time only (I4).
--
-- KEYS
--   lock        HASH    the lock; its other keys follow from it (lua/shared/keys.lua)
-- Replies
--   swept       there is a holder, or nobody waits in the queue
--   unfinished  call again
-- Invariants: I3 I4
-- include: state
-- include: holder
-- include: ends
-- include: time

if holder and ends >= now or not queued then return 'swept' end
-- include: keys
if holder then
  -- include: unreported
end
-- include: open { mine = nil }
if holder and not successor then redis.call('HSET', lock, 'clock', string.format('%.0f', clock)) end
return unfinished and 'unfinished' or 'swept'
