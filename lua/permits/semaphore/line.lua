-- line: the queue of a claim. A semaphore has only one queue.
--
-- Takes
--   lines  ZSETs see lua/permits/semaphore/queues.lua
-- Gives
--   line   ZSET  that queue
line = lines[1]
