-- sweep: continue to admit waiters and to end lapsed holds, where an earlier call has stopped. Each call stops at a
-- limit, so that it does not block the server for long.
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
-- Replies
--   swept       the queue is empty, or its first waiter wants more than is free
--   unfinished  call again
-- Invariants: I3 I4
local id = ''
-- include: permits
-- include: mode { call = {} }

-- include: queues
-- include: time
-- include: vacate { by = nil, mine = nil, asks = nil }
return unfinished and 'unfinished' or 'swept'
