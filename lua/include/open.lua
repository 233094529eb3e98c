-- The end of a holder: the lock goes to the next fair waiter, or is opened and the unfair ones are woken.
-- Returns the id of the new holder, if there is one.
local function open(mine)
  forgetReentries()
  local successor = queued and promote('handoff', mine)
  if successor then return successor end
  redis.call('HDEL', lock, 'owner', 'hold')
  redis.pcall('PUBLISH', lock .. ':unlock', 'free')
end
