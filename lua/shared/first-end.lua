-- first-end: the holder of a semaphore whose lease ends first: who has to be waited for at most.
--
-- Takes
--   lock       HASH    the lock
--   deadlines  ZSET    lua/shared/deadlines.lua
--   now        ms      the server's time
-- Gives
--   ttl        ms      until then; 0 where nobody holds
--   since      ms      how long it has held
--   bytes      string  how many bytes of `names` are the owner
--   names      string  its owner and label
--   among?     string  of how many permits it wanted some
local first = redis.call('ZRANGE', deadlines, 0, 0, 'WITHSCORES')
local record = first[1] and redis.call('HMGET', lock, first[1])[1]
if record then
  ttl, since = first[2] - now, math.max(0, now - math.floor(record:sub(1, TOKEN_END) / 1000))
  bytes, among, names = record:match(NUMBER_AND_NAMES, RECORD_TERMS_AT)
else
  ttl, since, bytes, names = 0, 0, '0', ''
end
