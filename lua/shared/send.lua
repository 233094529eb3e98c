-- send: a message to the inbox of a client that gets the lock, and whether anybody hears it.
--
-- In a cluster a client may not have followed the slot yet, which has just come to this node. So there its silence counts only if it has
-- been heard on this very node (lua/shared/place.lua).
--
-- Takes
--   client    string  the name of its inbox
--   message   string  false: it needs none
--   expiry    ZSET    waiters' deadlines
--   now       ms      the server's time
-- Gives
--   reached?  number  0: nobody hears it; absent, false or an error: that is not known, or does not matter
reached = message and redis.pcall('PUBLISH', INBOX .. client, message)
--[[cluster
if reached == 0 then
  local here = redis.pcall('CLUSTER', 'MYID')
  local noted = not here.err and redis.call('ZSCORE', expiry, client .. '@' .. here)
  if not noted or tonumber(noted) < now then reached = nil end
end
--]]
