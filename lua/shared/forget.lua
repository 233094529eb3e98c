-- forget: the holder ends as a whole, with all its holds. Costs nothing where nobody re-entered.
--
-- Takes
--   lock    HASH    the lock
--   all     ZSET    lua/shared/all.lua
-- Changes
--   holds   string  absent from here on
if holds then
  redis.call('UNLINK', all)
  redis.call('HDEL', lock, 'holds')
  holds = nil
end
