-- place: in a cluster, records in `expiry` that the caller's client is subscribed to its inbox on this node
-- (lua/shared/send.lua uses the record). The record is valid for `ttl`, and each heartbeat renews it. The script asks
-- Redis which node it runs on, because the request may have been sent to another node, which has redirected the client
-- to this one.
--
-- Takes
--   id      string  the id of one of the client's waiters, or a claim, which begins with the id
--   ttl     ms      the waiter's own expiry
--   queued  ms      the time until which the queue's keys live
--   expiry  ZSET    waiters' deadlines
--   now     ms      the server's time
--[[cluster
local who = id:sub(1, CLIENT_END)
local listeners = redis.pcall('PUBSUB', 'SHARDNUMSUB', INBOX .. who)
local here = redis.pcall('CLUSTER', 'MYID')
if not here.err and (listeners[2] or 0) > 0 then
  redis.call('ZADD', expiry, now + ttl, who .. '@' .. here)
  redis.call('PEXPIREAT', expiry, queued)
end
--]]
