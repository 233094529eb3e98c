-- renew: prolong holds that still exist; say which are gone. One call serves many locks of one client.
--
-- A lapsed lease is not revived, even where the permits are free: its holder has been told that it is lost (I1, I8).
-- A hold of the same id with a larger token is another grant: the one that is asked about was taken away meanwhile, and its
-- id, which waited again, was granted permits anew (I2).
-- A key of another type in a lock's place is a lock that is gone, and no reason to fail the others of the call.
-- A lease never gets shorter; 0 ms asks for nothing, and so confirms the hold and says how long it has.
-- PEXPIREAT comes first because a server at maxmemory refuses a script whose first write is HSET: being out of memory
-- is no reason to lose permits that are held.
--
-- KEYS
--   locks...  HASH    the lock of each hold
-- ARGV
--   asked...  id, token, ms: for each lock the hold, the token that its client knows, and its lease from now
-- Replies
--   renewed   for each hold: ttl ms; nil if it is gone; -1 if its id has been granted permits anew
-- Invariants: I1 I2 I5 I8
-- Constants
--   GRANTED_ANEW = -1  in the place of a ttl
--
-- include: time

local function renew(lock, id, known, lease)
  local state = redis.pcall('HMGET', lock, id, 'clock', 'keep')
  if state.err then
    if state.err:find('WRONGTYPE') then return false end
    return error(state.err)
  end
  local record, clock, keep = state[1], tonumber(state[2] or 0), tonumber(state[3] or 0)
  if not record then return false end
  -- include: deadlines { taken = 1 }
  local lives = tonumber(redis.call('ZSCORE', deadlines, id) or nil)
  if not lives or lives < now then return false end
  if tonumber(record:sub(1, TOKEN_END)) > known then return GRANTED_ANEW end
  if lives >= now + lease then return lives - now end

  local deadline = now + lease
  -- include: life
  redis.call('PEXPIREAT', lock, keep)
  redis.call('PEXPIREAT', deadlines, keep)
  redis.call('ZADD', deadlines, deadline, id)
  if life then redis.call('HSET', lock, 'keep', keep) end
  return lease
end

local reply = { 'renewed' }
for i = 1, #locks do
  reply[i + 1] = renew(locks[i], asked[3 * i - 2], tonumber(asked[3 * i - 1]), tonumber(asked[3 * i]))
end
return reply
