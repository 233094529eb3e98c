-- first-end: the holder of a semaphore whose lease ends first (lua/shared/first-end.lua), and what was known of the
-- caller's group.
--
-- Takes
--   lock       HASH    the lock
--   deadlines  ZSET    see lua/shared/live.lua
--   rival?     string  see lua/permits/semaphore/groups/mode.lua
--   now        ms      the server's time
-- Gives
--   ttl        ms      the time left of that holder's lease; 0: there is no holder
--   since      ms      how long ago that holder was granted the lock
--   bytes      string  how many bytes of `names` are the holder's owner
--   names      string  the holder's owner and label
--   among?     string  "<permits>;<limit>;<weight>": the number of permits that the semaphore has, according to the holder's claim; and what was known of the group, if anything
local first = redis.call('ZRANGE', deadlines, 0, 0, 'WITHSCORES')
local record = first[1] and redis.call('HMGET', lock, first[1])[1]
if record then
  ttl, since = first[2] - now, math.max(0, now - math.floor(record:sub(1, TOKEN_END) / 1000))
  bytes, among, names = record:match(NUMBER_AND_NAMES, RECORD_TERMS_AT)
else
  ttl, since, bytes, names = 0, 0, '0', ''
end
if rival then among = (among or '') .. ';' .. rival end
