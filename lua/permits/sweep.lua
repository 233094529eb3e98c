-- sweep: go on admitting waiters, or ending lapsed holds, where an earlier call has dealt with as many as one call may.
--
-- KEYS
--   lock        HASH    the lock; its other keys follow from it
-- Replies
--   swept       the head of the queue wants more than is free, or nobody waits there
--   unfinished  call again
-- Invariants: I3 I4
local id = ''
-- include: permits
-- include: deadlines

-- include: queues
-- include: time
-- include: vacate { by = nil, mine = nil, asks = nil }
return unfinished and 'unfinished' or 'swept'
