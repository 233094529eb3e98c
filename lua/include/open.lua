-- The end of a holder: the lock goes to the next fair waiter, or is opened and the unfair ones are woken. Expects `mine`,
-- as include/promote.lua. Sets `next` to the id of the new holder, or nil, and `heard` to how many were told that the lock
-- is free.
local next, heard
-- include: forget
if queued then
  local reason = 'handoff'
  -- include: promote
  next = successor
end
if not next then
  redis.call('HDEL', lock, 'holder')
  heard = tonumber(redis.pcall('PUBLISH', lock .. ':unlock', mine and 'free ' .. mine or 'free'))
end
