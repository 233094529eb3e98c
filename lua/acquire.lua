-- acquire: re-enter if the owner holds the lock; else take it if it is free and no live fair waiter is ahead; else,
-- when asked to queue, join the fair queue.
--
-- Repeating it with the same id changes nothing: an id that holds gets the same grant, an id that is queued keeps its
-- place, and is known to live. That is what makes a lost reply harmless (I5). A lapsed lease is found here, by the server's clock, not by the
-- expiry of a key (I1); where it lapsed with waiters queued, the first of them gets the lock, whoever asks (I3, I4).
-- A key that is new or was lost (clock 0) may have left its queue behind: then the queue itself is asked.
-- HSET is the first write of a plain grant, so a server at maxmemory refuses it whole.
--
-- KEYS
--   lock        HASH    the lock
--   queue       ZSET    fair waiters by ticket
--   expiry      ZSET    waiters' deadlines, ms
-- ARGV
--   id          string  this hold, and the waiter if it has to wait
--   self        string  the owner that asks
--   tag         string  its label
--   lease       ms
--   memory      ms      how long a free lock's clock is kept
--   inbox       string  prefix of the grant channels
--   entry?      string  queue entry; absent: a single attempt, never queued
--   ttl?        ms      the waiter's own expiry, as in the entry
--   headStart?  µs      subtracted from the ticket, as in the entry
-- Replies
--   granted     token, ttl ms: the lock was free
--   succeeded   token, ttl ms: taken over from a holder whose lease had lapsed
--   reentered   token, ttl ms: the owner holds it already
--   refused     ttl ms, position (0: not queued), ticket, holder's label, held for ms, clock (later grants are above it)
-- Invariants: I1 I2 I3 I4 I5
-- include: state
-- include: time
-- include: clock
-- include: life
-- include: grant
-- include: reentries
-- include: promote
-- include: enqueue

readTime()
local held = owner and ends >= now

if held and owner == self then
  if hold == id then return { 'granted', token, ends - now } end
  if not holds or redis.call('HEXISTS', lock, 'hold:' .. id) == 0 then
    ends = math.max(ends, now + lease)
    redis.call('HSET', lock, 'hold:' .. id, lease, 'holds', (holds or 1) + 1, 'until', ends)
    local life = prolongedLife(ends)
    if life then
      redis.call('HSET', lock, 'keep', life)
      redis.call('PEXPIREAT', lock, life)
    end
    if entry and queued then redis.call('ZREM', queue, entry) end
  end
  return { 'reentered', token, ends - now }
end

local leftBehind = clock == 0 and redis.call('EXISTS', queue) == 1
if leftBehind then queued = 0 end
local taken = owner and 'succeeded' or 'granted'

if not held and not queued then
  forgetReentries()
  grant(id, self, tag, tonumber(lease))
  return { taken, token, ends - now }
end

local ticket, position = '0', 0
if entry then
  ticket = digits(tick() - headStart)
  local joined = redis.call('ZADD', queue, 'NX', ticket, entry) == 1
  position = redis.call('ZRANK', queue, entry) + 1
  keepQueue(ttl, position == 1)
  if not joined then
    ticket = digits(redis.call('ZSCORE', queue, entry))
    redis.call('ZADD', expiry, now + ttl, id)
    redis.call('PEXPIREAT', expiry, queued)
  end
end

if not held then
  forgetReentries()
  if not promote(owner and 'expiry' or 'handoff', id) then grant(id, self, tag, tonumber(lease)) end
  if hold == id then return { taken, token, ends - now } end
  if leftBehind and not entry then redis.call('HSET', lock, 'queued', queued) end
  if entry then position = redis.call('ZRANK', queue, entry) + 1 end
end

return {
  'refused', ends - now, position, ticket, label, math.max(0, now - math.floor(token / 1000)),
  digits(math.max(clock, micros)),
}
