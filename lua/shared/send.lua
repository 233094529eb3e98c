-- send: sends a message to the inbox of a client that is granted the lock, and finds out whether the message reaches a
-- subscriber.
--
-- In a cluster, the slot may have just moved to this node, and the client may not have subscribed here yet. Then a
-- count of 0 subscribers does not mean that the client is gone. So in a cluster, `reached` is 0 only if there is a
-- record that the client was subscribed on this very node (lua/shared/place.lua).
--
-- Takes
--   client    string  the name of the client's inbox
--   message   string  the text; false: the client needs none
--   deadlines ZSET    see lua/shared/live.lua
--   now       ms      the server's time
-- Gives
--   reached?  number  how many subscribers received the message; absent, false or an error: the number is unknown, or no message was needed
reached = message and redis.pcall('PUBLISH', INBOX .. client, message)
--[[cluster
if reached == 0 then
  local here = redis.pcall('CLUSTER', 'MYID')
  local noted = not here.err and tonumber(redis.call('ZSCORE', deadlines, client .. '@') or nil)
  if not noted or noted < WAITER + now or noted % 1 ~= tonumber(here:sub(1, 2), 16) / 256 then reached = nil end
end
--]]
