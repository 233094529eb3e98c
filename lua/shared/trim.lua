-- trim: removes deadlines that have passed. If thousands of deadlines have passed, one call removes as many as the
-- server can remove quickly, and later calls remove the others.
--
-- ZREMRANGEBYSCORE runs even if no deadline has passed. The reason is that a server at maxmemory refuses a script whose
-- first write is HSET or ZADD. If the first write is ZREMRANGEBYSCORE, the server accepts the whole script.
--
-- Takes
--   timetable  ZSET  members scored by their deadlines, ms
--   now        ms    the server's time
-- Constants
--   MOST_TRIMMED = 500     deadlines removed by one call, at most
--   LAST_TRIMMED_AT = 499  the rank of the last deadline that one call removes
local many = redis.call('ZCOUNT', timetable, '-inf', '+inf') > MOST_TRIMMED
local far = many and tonumber(redis.call('ZRANGE', timetable, LAST_TRIMMED_AT, LAST_TRIMMED_AT, 'WITHSCORES')[2])
redis.call('ZREMRANGEBYSCORE', timetable, '-inf', far and far < now and far or '(' .. now)
