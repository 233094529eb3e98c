-- renew: prolong holds that still exist; say which are gone. One call serves many locks of one client.
--
-- A lapsed lease is not revived, even if nobody has taken the lock: its holder has been told that it is lost (I1, I8).
-- A hold of the same id with a larger token is another grant: the one that is asked about was taken away meanwhile, and its
-- id, which waited again, was granted the lock anew (I2). A smaller one is not: of hand-offs within the client Redis hears later.
-- A key of another type in a lock's place is a lock that is gone, and no reason to fail the others of the call.
-- A lease never gets shorter; 0 ms asks for nothing, and so confirms the hold and says how long it has. Each hold of a holder has
-- its own.
-- PEXPIREAT comes first because a server at maxmemory refuses a script whose first write is HSET: being out of memory
-- is no reason to lose a lock that is held.
--
-- KEYS
--   locks...  HASH    the lock of each hold
-- ARGV
--   asked...  id, token, ms: for each lock the hold, the token that its client knows, and its lease from now
-- Replies
--   renewed   for each hold: ttl ms; nil if it is gone; -1 if its id has been granted the lock anew
-- Invariants: I1 I2 I5 I8
-- Constants
--   GRANTED_ANEW = -1  in the place of a ttl
--
-- include: time

local function renew(lock, id, known, lease)
  local state = redis.pcall('HMGET', lock, 'holder', 'clock', 'keep', 'holds')
  if state.err then
    if state.err:find('WRONGTYPE') then return false end
    return error(state.err)
  end
  local holder, holds = state[1], state[4]
  local clock, keep = tonumber(state[2] or 0), tonumber(state[3] or 0)
  -- include: holder
  -- include: ends
  -- include: all
  -- include: live
  if not lives or lives < now then return false end
  if tonumber(token) > known then return GRANTED_ANEW end
  if lives >= now + lease then return lives - now end

  local deadline = now + lease
  -- include: life
  redis.call('PEXPIREAT', lock, keep)
  if holds then
    redis.call('ZADD', all, deadline, id)
    redis.call('PEXPIREAT', all, keep)
  end
  if deadline > ends then
    -- include: prolong
  end
  redis.call('HSET', lock, 'holder', holder, 'keep', keep)
  return lease
end

local reply = { 'renewed' }
for i = 1, #locks do
  reply[i + 1] = renew(locks[i], asked[3 * i - 2], tonumber(asked[3 * i - 1]), tonumber(asked[3 * i]))
end
return reply
