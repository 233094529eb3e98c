-- numbered: the holds of a read-write lock have no numbers (lua/permits/semaphore/numbered.lua).
--
-- Gives
--   numbers  string  nothing
numbers = ''
