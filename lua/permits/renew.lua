-- renew: prolong holds that still exist, and report which are gone. One call serves many locks of one client.
--
-- A lapsed lease is not revived, even if the permits are still free: its holder already counts it as lost (I1, I8).
-- If the hold's token in Redis is larger than the token that the client knows, the hold belongs to a later grant: the
-- client's grant was taken away, and then the same id waited again and was granted permits again (I2).
-- If a key of another type is in a lock's place, the hold of that lock is gone, and the holds of the other locks are
-- still renewed.
-- A lease never gets shorter. With 0 ms, the call only confirms the hold and reports the time left.
-- PEXPIREAT comes first because a server at maxmemory refuses a script whose first write is HSET. So a holder does not
-- lose its permits only because the server has no free memory.
--
-- KEYS
--   keys...   HASH    the lock of each hold, and then, in the same order, the deadlines of each (lua/holder.lua)
-- ARGV
--   asked...  id, token, ms for each lock: the hold, the token that its client knows, and the wanted lease from now
-- Replies
--   renewed   for each hold: ttl ms; nil if it is gone; -1 if its id has since been granted permits again
-- Invariants: I1 I2 I5 I8

-- functions
local stamp, micros, now = readTime()

local function renew(lock, deadlines, id, known, lease)
  local fields = redis.pcall('HMGET', lock, 'taken', 'clock', 'queued', 'keep', 'pace', id)
  if fields.err then
    if fields.err:find('WRONGTYPE') then return false end
    return error(fields.err)
  end
  local record = fields[6]
  if not record then return false end
  --[[cluster
  if not deadlines then return error({ err = 'ERR non local key' }) end
  --]]
  local lives = tonumber(redis.call('ZSCORE', deadlines, id) or nil)
  if not lives or lives < now then return false end
  if record:sub(1, TOKEN_END) + 0 > known then return GRANTED_ANEW end
  local deadline = now + lease
  if lives >= deadline then return lives - now end

  local s = permitsOf(lock, nil, deadlines, nil, fields, stamp, micros, now)
  local life = keepUntil(s, deadline)
  redis.call('PEXPIREAT', lock, s.keep)
  redis.call('PEXPIREAT', deadlines, s.keep)
  redis.call('ZADD', deadlines, deadline, id)
  if life then redis.call('HSET', lock, 'keep', life) end
  return lease
end

local reply, count = { 'renewed' }, #asked / 3
for i = 1, count do
  reply[i + 1] = renew(keys[i], keys[count + i], asked[3 * i - 2], asked[3 * i - 1] + 0, asked[3 * i] + 0)
end
return reply
