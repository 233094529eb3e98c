-- queues: the keys of a read-write lock's waiters. They share the lock's hash tag, and so its slot. Readers have a
-- queue of their own: they are admitted together, and no script has to search for them among the writers.
--
-- Takes
--   lock    HASH  the lock
-- Gives
--   lines   list  the queue of the writers and the queue of the readers, ZSETs scored by ticket
--   expiry  ZSET  the deadlines of the waiters in both, ms
lines, expiry = { lock .. ':queue', lock .. ':readers' }, lock .. ':expiry'
-- include: whole
