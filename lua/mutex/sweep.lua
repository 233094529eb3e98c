-- sweep: continue the search for the next holder, after an earlier call has reached the limit of dead waiters that one
-- call may pass over.
--
-- The bound on each call keeps the server free for other clients. Between two calls the lock has a queue and no holder.
-- No newcomer is granted the lock then, because every call that asks for it continues the search first. So if the
-- caller dies in between, only time is lost (I4).
--
-- KEYS
--   lock        HASH    the lock
--   queue?      ZSET    fair waiters by ticket
--   deadlines?  ZSET    see lua/shared/live.lua
-- Replies
--   swept       the lock has a holder, or the queue is empty
--   unfinished  call again
-- Invariants: I3 I4
-- include: state
-- include: holder
-- include: ends
-- include: time

if holder and ends >= now or not queued then return 'swept' end
-- include: keys { given = deadlines }
if holder then
  -- include: unreported
end
-- include: open { mine = nil, sampled = nil }
if holder and not successor then redis.call('HSET', lock, 'clock', string.format('%.0f', clock)) end
return unfinished and 'unfinished' or 'swept'
