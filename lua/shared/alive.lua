-- alive: whether a waiter of the queue is to be admitted, or passed over (lua/shared/promote.lua says for which reasons). One that
-- needs no message is not passed over for being deaf: its client is asking.
--
-- Takes
--   claim   string  of the waiter
--   ticket  string  its ticket
--   deaf    list    clients that nobody hears, each `true`
--   mine?   string  lua/shared/told.lua
--   asks?   ZSET    the same
--   lines   list    the same
--   expiry  ZSET    waiters' deadlines
--   now     ms      the server's time
-- Gives
--   alive   boolean  it is
--   lease   string  how long it wants to hold, ms
local ttl, headStart
lease, ttl, headStart = claim:match(LEASE_AND_WAITING, TERMS_AT)
-- include: told
local missed = not told and deaf[claim:sub(1, CLIENT_END)]
alive = not missed and (ticket + headStart) / 1000 + ttl >= now
if not alive and not missed then
  local deadline = redis.call('ZSCORE', expiry, claim:sub(1, ID_END))
  alive = deadline and tonumber(deadline) >= now
end
