-- trim: drops deadlines that are over; of thousands that were over at one time as many as the server can do quickly, and the
-- others by later calls.
--
-- Also where nothing is over, ZREMRANGEBYSCORE is a first write that a server at maxmemory does not refuse.
--
-- Takes
--   timetable  ZSET  of deadlines
--   now        ms    the server's time
-- Constants
--   MOST_TRIMMED = 500     deadlines, by one call
--   LAST_TRIMMED_AT = 499  where the last of them stands
local many = redis.call('ZCOUNT', timetable, '-inf', '+inf') > MOST_TRIMMED
local far = many and tonumber(redis.call('ZRANGE', timetable, LAST_TRIMMED_AT, LAST_TRIMMED_AT, 'WITHSCORES')[2])
redis.call('ZREMRANGEBYSCORE', timetable, '-inf', far and far < now and far or '(' .. now)
