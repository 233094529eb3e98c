-- alive: whether a waiter of the queue can be granted the lock, or is passed over (lua/shared/promote.lua lists the
-- reasons).
--
-- Takes
--   claim    string   the waiter's claim
--   ticket   string   the waiter's ticket
--   missed?  boolean  the waiter needs a message, and its client does not receive any
--   deadlines ZSET    see lua/shared/live.lua
--   now      ms       the server's time
-- Gives
--   alive    boolean  the waiter can be granted the lock
--   lease    ms       the length of the lease that it wants
--   ttl      ms       its waiterTtl
local headStart
lease, ttl, headStart = claim:match(LEASE_AND_WAITING, TERMS_AT)
alive = not missed and (ticket + headStart) / 1000 + ttl >= now
if not alive and not missed then
  local deadline = redis.call('ZSCORE', deadlines, claim:sub(1, ID_END))
  alive = deadline and deadline - WAITER >= now
end
