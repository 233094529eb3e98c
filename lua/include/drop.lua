-- Ends the hold `id`; with the last live hold of the holder, the holder. Expects `mine`, as include/promote.lua, and `used`, or
-- nil: the last token that was issued of those that its client had reserved. Sets `dropped` to whether there was such a hold; if
-- the lock has gone on, `heir` to the id of the new holder; `sweeping`, if that is still to be found (include/promote.lua); and
-- `told` to how many heard that it is open.
-- ZREM and HDEL come first, because a server at maxmemory refuses a script whose first write is HSET.
local heir, sweeping
local told = 0
local dropped = hold == id
local latest
if holds then
  dropped = redis.call('ZREM', lock .. ':holds', id) == 1
  latest = tonumber(redis.call('ZRANGE', lock .. ':holds', -1, -1, 'WITHSCORES')[2] or nil)
end
if dropped and latest and latest >= now then
  redis.call('HSET', lock, 'holder', token .. ' ' .. latest .. string.sub(holder, 31))
elseif dropped then
  if used then
    clock, reserved = math.max(clock, tonumber(used)), 0
    redis.call('HDEL', lock, 'reserved')
  end
  -- include: open
  heir, sweeping, told = next, more, heard
end
