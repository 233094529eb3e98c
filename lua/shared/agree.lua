-- agree: the holder's token becomes the floor, which the client has agreed on with other servers, and the clock is at least that.
--
-- It writes nothing where both are so already, so it may be repeated (I5). The lock's key lives until such a token is in the past
-- (lua/shared/life.lua), because the floor may stem from a server whose time is ahead (I2).
--
-- Takes
--   floor   string  µs, 16 digits
--   lock    HASH    the lock
--   ends    ms      the end of the holder's lease
-- Changes
--   holder  string  bears that token
--   token   string  the floor
--   clock   µs      the floor at least
--   keep    ms      the lock's key may live longer
if token ~= floor then
  token, holder = floor, floor .. holder:sub(TOKEN_END + 1)
  redis.call('HSET', lock, 'holder', holder)
end
if clock < tonumber(floor) then
  clock = tonumber(floor)
  -- include: life { deadline = ends }
  redis.call('HSET', lock, 'clock', floor, 'keep', keep)
  if life then redis.call('PEXPIREAT', lock, life) end
end
