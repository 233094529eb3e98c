-- place: in a cluster, notes in `expiry` that this client is heard on this very node, for as long as its waiters need no other
-- sign of life. The node is asked, not the client, which may have been redirected here.
--
-- Takes
--   id      string  of a waiter of the client; or a claim, which begins with it
--   ttl     ms      the waiter's own expiry
--   queued  ms      until when the queue's keys live
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
