-- lapse: ends the holds whose leases are over (I1), those first that have been over for longest.
--
-- Where the deadlines were lost, nobody can tell how long a hold lasts: then none does, as where the lock itself was lost (I8). What
-- is left of deadlines then is nobody's.
--
-- Takes
--   lock       HASH    the lock
--   deadlines  ZSET    lua/shared/deadlines.lua
--   now        ms      the server's time
--   clock      µs      the last ticket or token
--   queued?    ms      until when the queue's keys live
--   keep       ms      when the lock's key expires
-- Changes
--   taken      number  without them
-- Gives
--   more       boolean  as many as one call may end have been; there may be others
--   word       string   how those who are admitted now come by it: after the end of a lease, or not
-- Constants
--   MOST_LAPSED = 250  holds, by one call
more, word = false, 'handoff'
if clock == NO_CLOCK and redis.call('EXISTS', deadlines) == 1 then redis.call('UNLINK', deadlines) end
if taken > 0 then
  local many = redis.call('ZCOUNT', deadlines, '-inf', '(' .. now)
  if many > 0 then
    word = 'expiry'
    local over = redis.call('ZRANGE', deadlines, 0, math.min(many, MOST_LAPSED) - 1)
    local records = redis.call('HMGET', lock, unpack(over))
    for i = 1, #over do
      local record = records[i]
      if record then
        taken = taken - record:match(WANTS, RECORD_TERMS_AT)
        -- include: disown
      end
    end
    redis.call('ZREM', deadlines, unpack(over))
    redis.call('HDEL', lock, unpack(over))
    redis.call('HSET', lock, 'taken', taken)
    more = many > MOST_LAPSED
  elseif redis.call('EXISTS', deadlines) == 0 then
    taken = 0
    redis.call('UNLINK', lock)
    redis.call('HSET', lock, 'clock', string.format('%.0f', clock), 'keep', keep)
    if queued then redis.call('HSET', lock, 'queued', queued) end
    redis.call('PEXPIREAT', lock, keep)
  end
end
