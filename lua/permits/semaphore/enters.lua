-- enters: whether a waiter may re-enter. Never, because a semaphore is not re-entrant. A read-write lock is re-entrant
-- (lua/permits/read-write/enters.lua).
--
-- Gives
--   enters   boolean  false
enters = false
