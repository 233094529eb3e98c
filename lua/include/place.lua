-- In a cluster: notes in `expiry` that this client is heard on this very node, for as long as its waiters need no other sign
-- of life. Expects `who` (the 12 characters of its inbox), `ttl` and `queued`. The node is asked, not the client, which may
-- have been redirected here.
--[[cluster
local listeners = redis.pcall('PUBSUB', 'SHARDNUMSUB', inbox .. who)
local here = redis.pcall('CLUSTER', 'MYID')
if not here.err and (listeners[2] or 0) > 0 then
  redis.call('ZADD', expiry, now + ttl, who .. '@' .. here)
  redis.call('PEXPIREAT', expiry, queued)
end
--]]
