-- place: in a cluster, records in `expiry` that this client receives messages on this node. Like a heartbeat, the
-- record is valid for `ttl`. The script asks the node for its name, because the client's request may have been
-- redirected to this node from another one.
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
