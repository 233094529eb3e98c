-- enqueue: records that a waiter is queued until at least `now + ttl`, and makes the queue's keys live that long (I7).
--
-- The life of the keys grows in steps of `ttl`, so most joins need no command to prolong it.
--
-- Takes
--   ttl       ms       the waiter's own expiry
--   fresh     boolean  the queue was empty, so its key is new and has no life yet
--   lock      HASH     the lock
--   queue     ZSET     fair waiters by ticket
--   now       ms       the server's time
--   clock     µs       the last ticket
--   tick      string   the last ticket as text
-- Changes
--   queued    ms       the time until which the queue's keys live
--   keep      ms       grows if the lock's key has to live longer
if queued and queued >= now + ttl and not fresh then
  redis.call('HSET', lock, 'clock', tick)
else
  queued = math.max(queued or 0, now + 2 * ttl)
  -- include: life { deadline = queued }
  redis.call('HSET', lock, 'clock', tick, 'queued', queued, 'keep', keep)
  redis.call('PEXPIREAT', queue, queued)
  if life then redis.call('PEXPIREAT', lock, life) end
end
