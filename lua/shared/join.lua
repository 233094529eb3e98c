-- join: puts a waiter into its queue. If the waiter is there already, it keeps its ticket (I5).
--
-- Takes
--   claim   string   the waiter's claim
--   line    ZSET     its queue
-- Changes
--   ticket  string   the waiter's ticket
-- Gives
--   joined  boolean  the waiter was not in the queue
joined = redis.call('ZADD', line, 'NX', ticket, claim) == 1
if not joined then ticket = string.format('%.0f', redis.call('ZSCORE', line, claim)) end
