-- remains: whether a queue is there, though nothing is known of it.
--
-- Takes
--   lines    list     lua/permits/semaphore/queues.lua
-- Gives
--   remains  boolean  there is
remains = redis.call('EXISTS', lines[1]) == 1
