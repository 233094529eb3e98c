-- remains: nothing, because lua/permits/semaphore/groups/mode.lua has already looked for queues that are left although the
-- lock's key is new or was lost.
--
-- Gives
--   remains  boolean  false
remains = false
