-- alive: whether a waiter of the queue is to have the lock, or is passed over (lua/shared/promote.lua says for which reasons).
--
-- Takes
--   claim    string   of the waiter
--   ticket   string   its ticket
--   missed?  boolean  it needs a message, and nobody hears its client
--   expiry   ZSET     waiters' deadlines
--   now      ms       the server's time
-- Gives
--   alive    boolean  it is
--   lease    ms       how long it wants to hold
local ttl, headStart
lease, ttl, headStart = claim:match(LEASE_AND_WAITING, TERMS_AT)
alive = not missed and (ticket + headStart) / 1000 + ttl >= now
if not alive and not missed then
  local deadline = redis.call('ZSCORE', expiry, claim:sub(1, ID_END))
  alive = deadline and tonumber(deadline) >= now
end
