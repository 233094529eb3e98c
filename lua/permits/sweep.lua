-- sweep: continue to admit waiters and to end lapsed holds, after an earlier call has reached the limit of one call.
--
-- KEYS
--   lock        HASH    the lock; its other keys follow from it
-- Replies
--   swept       the queue is empty, or its first waiter wants more than is free
--   unfinished  call again
-- Invariants: I3 I4
local id = ''
-- include: permits
-- include: deadlines

-- include: queues
-- include: time
-- include: vacate { by = nil, mine = nil, asks = nil }
return unfinished and 'unfinished' or 'swept'
