-- remains: whether a queue exists although the lock's key is new or was lost.
--
-- Takes
--   lines    ZSETs   see lua/permits/read-write/queues.lua
-- Gives
--   remains  boolean  at least one of the two queues exists
remains = redis.call('EXISTS', lines[1]) == 1 or redis.call('EXISTS', lines[2]) == 1
