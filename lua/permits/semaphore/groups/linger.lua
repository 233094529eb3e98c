-- linger: keeps both queues alive while a waiter is in one of them. lua/shared/enqueue.lua has already set the life of
-- that queue.
--
-- Takes
--   line    ZSET   the queue whose life is already set
--   lines   ZSETs  see lua/permits/semaphore/groups/queues.lua
--   queued  ms     the time until which the queues live
redis.call('PEXPIREAT', line == lines[1] and lines[2] or lines[1], queued)
