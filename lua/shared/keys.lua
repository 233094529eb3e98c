-- keys: the lock's other keys, which share its hash tag, and so its slot.
--
-- Takes
--   lock    HASH  the lock
-- Gives
--   queue   ZSET  fair waiters by ticket
--   expiry  ZSET  waiters' deadlines, ms
queue, expiry = lock .. ':queue', lock .. ':expiry'
