-- forget: ends all holds of the holder. If the holder has not re-entered, this costs nothing.
--
-- Takes
--   lock    HASH    the lock
--   all     ZSET    see lua/shared/all.lua
-- Changes
--   holds   string  becomes absent
if holds then
  redis.call('UNLINK', all)
  redis.call('HDEL', lock, 'holds')
  holds = nil
end
