-- foreseen: nothing, because the place that a caller would have follows from how many callers are queued
-- (lua/permits/semaphore/groups/foreseen.lua).
--
-- Gives
--   foreseen  string  '0'
foreseen = '0'
