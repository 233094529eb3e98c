-- Records that somebody is queued until `now + ttl` at least, and lets the queue's keys live that long (I7).
-- The life moves on in steps of `ttl`, so that most joins need no command for it; but a queue that was empty is a new
-- key (`fresh`), which has no life yet.
local function keepQueue(ttl, fresh)
  if queued and queued >= now + ttl and not fresh then
    redis.call('HSET', lock, 'clock', digits(clock))
    return
  end
  queued = math.max(queued or 0, now + 2 * ttl)
  local life = prolongedLife(queued)
  redis.call('HSET', lock, 'clock', digits(clock), 'queued', queued, 'keep', keep)
  redis.call('PEXPIREAT', queue, queued)
  if life then redis.call('PEXPIREAT', lock, life) end
end
