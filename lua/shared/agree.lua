-- agree: sets the holder's token to `floor`, the token on which the client and the other servers have agreed. If
-- `clock` is smaller than `floor`, `clock` is raised to it.
--
-- If nothing has to change, nothing is written, so the call may be repeated (I5). `floor` is a time in µs, and may come
-- from a server whose clock is ahead. So the lock's key lives at least until that time (lua/shared/life.lua) (I2).
--
-- Takes
--   floor   string  µs, 16 digits
--   lock    HASH    the lock
--   ends    ms      the end of the holder's lease
--   now     ms      the server's time
-- Changes
--   holder  string  bears the new token
--   token   string  equals the floor
--   clock   µs      is at least the floor
--   keep    ms      grows if the lock's key has to live longer
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
