-- place: in a cluster, records in `deadlines` that the caller's client is subscribed to its inbox on this node
-- (lua/shared/send.lua uses the record). The record is valid for `ttl`, and each heartbeat renews it. The script asks
-- Redis which node it runs on, because the request may have been sent to another node, which has redirected the client
-- to this one.
--
-- There is one record for each client, so the record of another node replaces that of this one. Otherwise, after a
-- failover there and back, this node would find its own old record. The fraction of the time names the node: it is made
-- of the first two digits of the node's id.
--
-- Takes
--   id      string  the id of one of the client's waiters, or a claim, which begins with the id
--   ttl     ms      the waiter's own expiry
--   deadlines ZSET  see lua/shared/live.lua
--   keep    ms      the time until which the deadlines live
--   now     ms      the server's time
--[[cluster
local who = id:sub(1, CLIENT_END)
local listeners = redis.pcall('PUBSUB', 'SHARDNUMSUB', INBOX .. who)
local here = redis.pcall('CLUSTER', 'MYID')
if not here.err and (listeners[2] or 0) > 0 then
  redis.call('ZADD', deadlines, WAITER + now + ttl + tonumber(here:sub(1, 2), 16) / 256, who .. '@')
  redis.call('PEXPIREAT', deadlines, keep)
end
--]]
