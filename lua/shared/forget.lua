-- forget: ends all holds of the holder. If the holder has not re-entered, this costs nothing.
--
-- It comes after lua/shared/promote.lua. If it has emptied the ZSET and a cluster moves the slot, Redis refuses to read
-- the ZSET again, because it looks for the key on the other node.
--
-- Takes
--   lock       HASH    the lock
--   deadlines  ZSET    see lua/shared/live.lua
-- Changes
--   holds      string  becomes absent
if holds then
  if redis.call('ZCOUNT', deadlines, WAITER, '+inf') == 0 then
    redis.call('UNLINK', deadlines)
  else
    redis.call('ZREMRANGEBYSCORE', deadlines, '-inf', '(' .. WAITER)
  end
  redis.call('HDEL', lock, 'holds')
  holds = nil
end
