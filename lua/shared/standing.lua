-- standing: nothing, because only a semaphore has groups (lua/permits/semaphore/groups/standing.lua).
--
-- Gives
--   standing?  list  absent
standing = nil
