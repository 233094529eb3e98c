-- sweep: continue to admit waiters and to end lapsed holds, where an earlier call has stopped. Each call stops at a
-- limit, so that it does not block the server for long.
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
-- Replies
--   swept       the queue is empty, or its first waiter wants more than is free
--   unfinished  call again
-- Invariants: I3 I4

--[[cluster
if not none then return redis.error_reply('ERR non local key') end
--]]
-- functions
local s, mark = readPermits(lock, queue, deadlines, readers)
if turns and mark and not s.queued then
  -- functions
  withGroups(s, waiting, turns, shares, mark)
end
local _, unfinished = vacate(s, mark, nil, nil, nil)
return unfinished and 'unfinished' or 'swept'
