-- remains: whether a queue is there, though nothing is known of it.
--
-- Takes
--   lines    list     lua/permits/read-write/queues.lua
-- Gives
--   remains  boolean  there is
remains = redis.call('EXISTS', lines[1]) == 1 or redis.call('EXISTS', lines[2]) == 1
