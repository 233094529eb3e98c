-- Records that somebody is queued until `now + ttl` at least, and lets the queue's keys live that long (I7).
-- The life moves on in steps of `ttl`, so that most joins need no command for it.
local function keepQueue(ttl)
  if queued and queued >= now + ttl then
    redis.call('HSET', lock, 'clock', digits(clock))
    return
  end
  queued = now + 2 * ttl
  local life = prolongedLife(queued)
  redis.call('HSET', lock, 'clock', digits(clock), 'queued', queued, 'keep', keep)
  redis.call('PEXPIREAT', queue, queued)
  if life then redis.call('PEXPIREAT', lock, life) end
end
