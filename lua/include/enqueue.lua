-- Records that somebody is queued until `now + ttl` at least, and lets the queue's keys live that long (I7). Expects `ttl`
-- and `fresh`: a queue that was empty is a new key, which has no life yet.
-- The life moves on in steps of `ttl`, so that most joins need no command for it.
if queued and queued >= now + ttl and not fresh then
  redis.call('HSET', lock, 'clock', string.format('%.0f', clock))
else
  queued = math.max(queued or 0, now + 2 * ttl)
  local deadline = queued
  -- include: life
  redis.call('HSET', lock, 'clock', string.format('%.0f', clock), 'queued', queued, 'keep', keep)
  redis.call('PEXPIREAT', queue, queued)
  if life then redis.call('PEXPIREAT', lock, life) end
end
