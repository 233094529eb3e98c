-- position: the place of a waiter, by the order of grants.
--
-- Takes
--   claim     string  of the waiter
--   line      ZSET    its queue
-- Gives
--   position  number  from 1
position = redis.call('ZRANK', line, claim) + 1
