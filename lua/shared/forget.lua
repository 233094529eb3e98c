-- forget: ends all holds of the holder. If the holder has not re-entered, this costs nothing.
--
-- The deadlines of waiters stay if anybody is queued, and live no longer than the queue, as they did before the holder has
-- re-entered (I7).
-- It comes after lua/shared/promote.lua. If it has emptied the ZSET and a cluster moves the slot, Redis refuses to read
-- the ZSET again, because it looks for the key on the other node.
--
-- Takes
--   lock       HASH    the lock
--   queued?    ms      the time until which the queue's keys live
--   now        ms      the server's time
--   deadlines  ZSET    see lua/shared/live.lua
-- Changes
--   holds      string  becomes absent
if holds then
  if not queued then
    redis.call('UNLINK', deadlines)
  else
    if queued > now then redis.call('PEXPIREAT', deadlines, queued) end
    redis.call('ZREMRANGEBYSCORE', deadlines, '-inf', '(' .. WAITER)
  end
  redis.call('HDEL', lock, 'holds')
  holds = nil
end
