-- position: the place of a waiter in the order of grants.
--
-- Takes
--   claim     string  the waiter's claim
--   line      ZSET    its queue
-- Gives
--   position  number  counted from 1
position = redis.call('ZRANK', line, claim) + 1
