-- rejoin: puts waiters back into their queue, with their old tickets. A waiter that is still there keeps its place.
--
-- Takes
--   line    ZSET  the queue
--   joins   list  ticket, claim for each waiter
redis.call('ZADD', line, 'NX', (table.unpack or unpack)(joins))
