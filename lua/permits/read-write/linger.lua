-- linger: both queues live for as long as somebody is queued: lua/shared/enqueue.lua has seen to one of them.
--
-- Takes
--   line     ZSET  that one
--   lines    list  lua/permits/read-write/queues.lua
--   queued   ms    until when they live
redis.call('PEXPIREAT', line == lines[1] and lines[2] or lines[1], queued)
