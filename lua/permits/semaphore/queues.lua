-- queues: the keys of a semaphore's waiters. They share the lock's hash tag, and so its slot.
--
-- Takes
--   lock    HASH  the lock
-- Gives
--   lines   list  the one queue of the fair waiters, a ZSET scored by ticket
--   expiry  ZSET  waiters' deadlines, ms
lines, expiry = { lock .. ':queue' }, lock .. ':expiry'
-- include: whole
