-- Drops what is over from `timetable`, a ZSET of deadlines; of thousands that were over at one time as many as the server can do
-- quickly, and the others by later calls.
-- Also where nothing is over, ZREMRANGEBYSCORE is a first write that a server at maxmemory does not refuse.
local many = redis.call('ZCOUNT', timetable, '-inf', '+inf') > 500
local far = many and tonumber(redis.call('ZRANGE', timetable, 499, 499, 'WITHSCORES')[2])
redis.call('ZREMRANGEBYSCORE', timetable, '-inf', far and far < now and far or '(' .. now)
