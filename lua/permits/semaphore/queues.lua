-- queues: the keys of a semaphore's waiters.
--
-- Takes
--   queue   ZSET  the fair waiters by ticket
--   none?   string  a key that never exists (lua/shared/settled.lua)
-- Gives
--   lines   ZSETs the one queue of the fair waiters
-- include: settled
lines = { queue }
