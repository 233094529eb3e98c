-- quit: removes a waiter from its queue.
--
-- Takes
--   claim   string   the waiter's claim
--   line    ZSET     its queue
-- Gives
--   gone    boolean  the waiter was queued
gone = redis.call('ZREM', line, claim) == 1
