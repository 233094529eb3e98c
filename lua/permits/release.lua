-- release: end one hold, and admit the waiters that fit now.
--
-- A release ends only the hold whose id it has (I5). So a release that is late, repeated or from another client finds
-- no such hold, and changes nothing. If a hold's lease has lapsed but the hold is still recorded, this call ends the
-- hold. The reply need not say that the lease had lapsed, because the caller knows its deadline.
--
-- If the call of the hold has a `minHold` that has not passed, the permits stay taken until then. The hold is over for
-- its caller, so its id changes, as in lua/shared/retain.lua. PEXPIREAT comes first because a server at maxmemory refuses
-- a script whose first write is HSET. The new deadline is written before the old one is removed, so that the key is never
-- empty.
--
-- KEYS
--   lock        HASH    the lock
--   deadlines   ZSET    see lua/shared/live.lua
--   queue?      ZSET    fair waiters by ticket
--   readers?    ZSET    only of a read-write lock: the readers among them, who have a queue of their own
--   waiting?    ZSET    only of a semaphore with groups: the waiters of the groups (lua/permits/semaphore/groups/queues.lua)
--   turns?      ZSET    only of a semaphore with groups: the groups whose turn may come (lua/permits/semaphore/groups/settle.lua)
--   shares?     HASH    only of a semaphore with groups: what the groups have had (lua/permits/semaphore/groups/settle.lua)
--   none?       string  only in a cluster: see lua/shared/settled.lua
-- ARGV
--   id          string  the hold to end; the reply contains the grants to waiters of the same client in the same queue
--   minHold?    string  present: the hold's claim has a `minHold`. If it has not passed, the permits stay taken until then
-- Replies
--   released    how many subscribers received the message that permits are free; 0 also if no message was sent, for example because waiters of the fair queue got the permits
--   passed      id, token (with numbers, see lua/permits/semaphore/number.lua), ttl ms for each waiter of the same client, in the same queue, that is now a holder
--   unfinished  the same values as `passed`, or none. One call may admit only so many waiters; lua/permits/sweep.lua admits the others
--   ended       the hold did not exist
-- Invariants: I2 I3 I4 I5 I7
-- include: permits
-- include: mode { call = {} }
if not record then return 'ended' end
local client = id:sub(1, CLIENT_END)

if minHold then
  -- include: queues
  local least = record:match(MIN_HOLD, RECORD_TERMS_AT)
  -- include: time
  local till = least and math.min(math.floor(record:sub(1, TOKEN_END) / 1000), now) + least
  local first, kept = id:sub(1, 1), KEPT .. id:sub(2)
  -- A repeated heartbeat may have been granted the id again, after its first hold was retained. One of them is enough.
  -- If the deadlines were lost, all holds have ended (lua/shared/lapse.lua), so this one is not retained.
  local lives = redis.call('ZSCORE', deadlines, id)
  if lives and till and till > now and not redis.call('HMGET', lock, kept)[1] then
    -- include: life { deadline = till }
    redis.call('PEXPIREAT', lock, keep)
    redis.call('PEXPIREAT', deadlines, keep)
    local terms = record:sub(RECORD_TERMS_AT):gsub(MIN_HOLD_TERM, '%0,' .. first, 1)
    redis.call('ZADD', deadlines, till, kept)
    redis.call('ZREM', deadlines, id)
    redis.call('HDEL', lock, id)
    redis.call('HSET', lock, kept, record:sub(1, CLAIM_AT - 1) .. kept .. terms, 'keep', keep)
    -- include: relinquish
    if queued then
      -- include: spent { length = till * 1000 - record:sub(1, TOKEN_END) }
      if spent then
        -- include: sample
        redis.call('HSET', lock, 'pace', renewed)
      end
    end
    if till < now + record:match(WAITING, RECORD_TERMS_AT) then
      for _, queue in ipairs(lines) do
        -- include: tell { lasts = till - now }
      end
    end
    return 'released 0'
  end
end

-- Fast path: the usual case returns here, before the work that only rarer cases need.
if not queued then
  -- include: give-up { sampled = nil }
  -- include: opened
  if taken == 0 then
    -- include: shorten
  end
  return 'released ' .. heard
end

-- include: queues
-- include: time
local sampled
-- include: spent { length = micros - record:sub(1, TOKEN_END) }
if spent then
  -- include: sample
  sampled = renewed
end
-- include: give-up
-- include: line { claim = record:sub(CLAIM_AT) }
-- include: vacate { by = client, mine = client, asks = line }
local passed = ''
for i = 1, #admitted, 2 do
  local claim = admitted[i]
  -- include: told { mine = client, asks = line }
  if told then
    passed = passed .. ' ' .. claim:sub(1, ID_END) .. ' ' .. admitted[i + 1] .. ' ' .. claim:match(LEASE, TERMS_AT)
  end
end
if unfinished then return 'unfinished' .. passed end
if passed ~= '' then return 'passed' .. passed end
return 'released ' .. heard
