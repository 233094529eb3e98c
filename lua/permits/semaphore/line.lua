-- line: in which queue a claim stands: a semaphore has one.
--
-- Takes
--   lines  list  lua/permits/semaphore/queues.lua
-- Gives
--   line   ZSET  that one
line = lines[1]
