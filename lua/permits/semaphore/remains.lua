-- remains: whether a queue exists although the lock's key is new or was lost.
--
-- Takes
--   lines    ZSETs   see lua/permits/semaphore/queues.lua
-- Gives
--   remains  boolean  the queue exists
remains = redis.call('EXISTS', lines[1]) == 1
