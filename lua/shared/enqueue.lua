-- enqueue: records that somebody is queued until `now + ttl` at least, and lets the queue's keys live that long (I7).
--
-- The life moves on in steps of `ttl`, so that most joins need no command for it.
--
-- Takes
--   ttl       ms       the waiter's own expiry
--   fresh     boolean  the queue was empty: a new key, which has no life yet
--   lock      HASH     the lock
--   queue     ZSET     fair waiters by ticket
--   now       ms       the server's time
--   clock     µs       the last ticket
--   tick      string   the same
-- Changes
--   queued    ms       until when the queue's keys live
--   keep      ms       the lock's key may live longer
if queued and queued >= now + ttl and not fresh then
  redis.call('HSET', lock, 'clock', tick)
else
  queued = math.max(queued or 0, now + 2 * ttl)
  -- include: life { deadline = queued }
  redis.call('HSET', lock, 'clock', tick, 'queued', queued, 'keep', keep)
  redis.call('PEXPIREAT', queue, queued)
  if life then redis.call('PEXPIREAT', lock, life) end
end
