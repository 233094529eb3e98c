-- The end of a holder: the lock goes to the next fair waiter, or is opened and the unfair ones are woken. Expects `mine`,
-- as include/promote.lua. Sets `next` to the id of the new holder, or nil; `more` as include/promote.lua, and then the lock is
-- neither handed on nor opened yet; and `heard` to how many were told that the lock is free.
local next, more, heard
-- include: forget
if queued then
  local reason = 'handoff'
  -- include: promote
  next, more = successor, unfinished
end
if not next then
  redis.call('HDEL', lock, 'holder')
  if not more then heard = redis.pcall('PUBLISH', lock .. ':unlock', mine and 'free ' .. mine or 'free') end
end
heard = tonumber(heard) or 0
