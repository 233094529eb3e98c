-- send: sends a message to the inbox of a client that is granted the lock, and finds out whether the message reaches a
-- subscriber.
--
-- In a cluster, the slot may have just moved to this node, and the client may not have followed yet. So in a cluster, a
-- count of 0 subscribers is reported only if the client was subscribed on this very node before (lua/shared/place.lua).
--
-- Takes
--   client    string  the name of the client's inbox
--   message   string  the text; false: the client needs none
--   expiry    ZSET    waiters' deadlines
--   now       ms      the server's time
-- Gives
--   reached?  number  0: no subscriber received the message; absent, false or an error: whether one did is unknown, or does not matter
reached = message and redis.pcall('PUBLISH', INBOX .. client, message)
--[[cluster
if reached == 0 then
  local here = redis.pcall('CLUSTER', 'MYID')
  local noted = not here.err and redis.call('ZSCORE', expiry, client .. '@' .. here)
  if not noted or tonumber(noted) < now then reached = nil end
end
--]]
