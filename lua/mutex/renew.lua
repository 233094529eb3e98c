-- renew: prolong holds that still exist, and report which are gone. One call serves many locks of one client.
--
-- A lapsed lease is not revived, even if nobody has taken the lock: its holder already counts it as lost (I1, I8).
-- If the hold's token in Redis is larger than the token that the client knows, the hold belongs to a later grant: the
-- client's grant was taken away, and then the same id waited again and was granted the lock again (I2). If the token in
-- Redis is smaller, the hold belongs to the same grant. In that case the client has passed the lock to another of its
-- waiters, with a larger token, and Redis has not learned of it yet. If a key of another type is in a lock's place, the
-- hold of that lock is gone, and the holds of the other locks are still renewed.
-- A lease never gets shorter. With 0 ms, the call only confirms the hold and reports the time left. Each hold of a
-- holder has its own lease.
-- PEXPIREAT comes first because a server at maxmemory refuses a script whose first write is HSET. So a holder does not
-- lose its lock only because the server has no free memory.
--
-- KEYS
--   keys...   HASH    the lock of each hold, and then, in the same order, the deadlines of each (lua/holder.lua)
-- ARGV
--   asked...  id, token, ms for each lock: the hold, the token that its client knows, and the wanted lease from now
-- Replies
--   renewed   for each hold: ttl ms; nil if it is gone; -1 if its id has since been granted the lock again
-- Invariants: I1 I2 I5 I8

-- functions
local stamp, micros, now = readTime()

local function renew(lock, deadlines, id, known, lease)
  local fields = redis.pcall('HMGET', lock, 'holder', 'clock', 'queued', 'keep', 'holds')
  if fields.err then
    if fields.err:find('WRONGTYPE') then return false end
    return error(fields.err)
  end
  local s = stateOf(lock, nil, deadlines, fields, stamp, micros, now)
  --[[cluster
  if s.holds and not deadlines then return error({ err = 'ERR non local key' }) end
  --]]
  local ends = endOf(s, id)
  if not ends or ends < now then return false end
  if s.token + 0 > known then return GRANTED_ANEW end
  local deadline = now + lease
  if ends >= deadline then return ends - now end

  keepUntil(s, deadline)
  redis.call('PEXPIREAT', lock, s.keep)
  if s.holds then
    redis.call('ZADD', deadlines, deadline, id)
    redis.call('PEXPIREAT', deadlines, math.max(s.ends, deadline, s.queued or 0) + LINGER)
  end
  if deadline > s.ends then prolong(s, deadline) end
  redis.call('HSET', lock, 'holder', s.holder, 'keep', s.keep)
  return lease
end

local reply, count = { 'renewed' }, #asked / 3
for i = 1, count do
  reply[i + 1] = renew(keys[i], keys[count + i], asked[3 * i - 2], asked[3 * i - 1] + 0, asked[3 * i] + 0)
end
return reply
