-- queues: the keys of those who wait for a read-write lock, which share its hash tag, and so its slot. Readers are admitted together, so
-- they have a queue of their own, and nobody has to look for them among the writers.
--
-- Takes
--   lock    HASH  the lock
-- Gives
--   lines   list  the queues of the writers and of the readers: ZSETs, by ticket
--   expiry  ZSET  deadlines of both, ms
lines, expiry = { lock .. ':queue', lock .. ':readers' }, lock .. ':expiry'
-- include: whole
