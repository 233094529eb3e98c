-- queues: the keys of those who wait for a semaphore, which share its hash tag, and so its slot.
--
-- Takes
--   lock    HASH  the lock
-- Gives
--   lines   list  the queue of the fair waiters: ZSET, by ticket
--   expiry  ZSET  waiters' deadlines, ms
lines, expiry = { lock .. ':queue' }, lock .. ':expiry'
-- include: whole
