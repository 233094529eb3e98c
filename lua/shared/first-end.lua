-- first-end: the holder whose lease ends first, among the holders of a semaphore. If no permit is released and no lease
-- is renewed, no permit becomes free before that end.
--
-- Takes
--   lock       HASH    the lock
--   deadlines  ZSET    see lua/shared/deadlines.lua
--   now        ms      the server's time
-- Gives
--   ttl        ms      the time left of its lease; 0: there is no holder
--   since      ms      the time for which it has held
--   bytes      string  how many bytes of `names` are its owner
--   names      string  its owner and label
--   among?     string  the number of permits that the semaphore has, according to the holder's claim
local first = redis.call('ZRANGE', deadlines, 0, 0, 'WITHSCORES')
local record = first[1] and redis.call('HMGET', lock, first[1])[1]
if record then
  ttl, since = first[2] - now, math.max(0, now - math.floor(record:sub(1, TOKEN_END) / 1000))
  bytes, among, names = record:match(NUMBER_AND_NAMES, RECORD_TERMS_AT)
else
  ttl, since, bytes, names = 0, 0, '0', ''
end
