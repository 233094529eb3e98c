-- release: end one hold, and admit the waiters that fit now.
--
-- A release ends only the hold whose id it has (I5). So a release that is late, repeated or from another client finds
-- no such hold, and changes nothing. If a hold's lease has lapsed but the hold is still recorded, this call ends the
-- hold. The reply need not say that the lease had lapsed, because the caller knows its deadline.
--
-- If the call of the hold has a `minHold` that has not passed, the permits stay taken until then. The hold is over for
-- its caller, so its id changes, as in `retain` (lua/holder.lua). PEXPIREAT comes first because a server at maxmemory refuses
-- a script whose first write is HSET. The new deadline is written before the old one is removed, so that the key is never
-- empty.
--
-- KEYS
--   lock        HASH    the lock
--   deadlines   ZSET    the ends of holds, and waiters' deadlines (lua/README.md)
--   queue?      ZSET    fair waiters by ticket
--   readers?    ZSET    only of a read-write lock: the readers among them, who have a queue of their own
--   waiting?    ZSET    only of a semaphore: the waiters with a group (lua/groups.lua)
--   turns?      ZSET    only of a semaphore: the groups whose turn may come
--   shares?     HASH    only of a semaphore: what the groups have had
--   none?       string  only in a cluster: a key that never exists (lua/README.md)
-- ARGV
--   id          string  the hold to end; the reply contains the grants to waiters of the same client in the same queue
--   minHold?    string  present: the hold's claim has a `minHold`. If it has not passed, the permits stay taken until then
-- Replies
--   released    the hold has ended
--   passed      id, token (with numbers, see `giveNumbers`), ttl ms for each waiter of the same client, in the same queue, that is now a holder
--   unfinished  the same values as `passed`, or none. One call may admit only so many waiters; lua/permits/sweep.lua admits the others
--   ended       the hold did not exist
-- Invariants: I2 I3 I4 I5 I7

local fields = redis.call('HMGET', lock, 'taken', 'clock', 'queued', 'keep', 'pace', id)
local mark, record = fields[3], fields[6]
if not record then return 'ended' end
local client, wants, _, more = id:sub(1, CLIENT_END), record:match(WANTS, RECORD_TERMS_AT)

-- Fast path: the usual case returns here, before the work that only rarer cases need. It is `giveUp` (lua/permits.lua), without
-- numbers, groups and owners.
if not mark and not minHold and more == ''
  and not (readers and record:sub(RECORD_TERMS_AT, RECORD_NAMELESS_END) ~= NAMELESS) then
  local taken = (fields[1] or 0) - wants
  if taken == 0 then
    redis.call('UNLINK', deadlines)
  else
    redis.call('ZREM', deadlines, id)
  end
  redis.call('HDEL', lock, id)
  redis.call('HSET', lock, 'taken', taken)
  -- If a reader has released while others read, only writers wait, and they have to wait for the others too.
  if taken == 0 or not readers or wants ~= '1' then redis.pcall('PUBLISH', lock .. ':unlock', 'free ' .. client) end
  local last, keep = fields[2] or 0, fields[4] or 0
  if taken == 0 and keep - last / 1000 > MEMORY * 1.1 + 1 then
    -- functions
    shorten(lock, keep + 0, last + 0)
  end
  return 'released'
end

--[[cluster
if (mark or minHold) and not none then return redis.error_reply('ERR non local key') end
--]]
-- functions
local s = permitsOf(lock, queue, deadlines, readers, fields, readTime())
if turns and mark and not s.queued then
  -- functions
  withGroups(s, waiting, turns, shares, mark)
end

if minHold then
  -- functions
  local least, since = record:match(MIN_HOLD, RECORD_TERMS_AT), record:sub(1, TOKEN_END)
  local till = least and math.min(math.floor(since / 1000), s.now) + least
  local first, kept = id:sub(1, 1), KEPT .. id:sub(2)
  -- A repeated heartbeat may have been granted the id again, after its first hold was retained. One of them is enough.
  -- If the deadlines were lost, all holds have ended (`lapse`), so this one is not retained.
  local lives = redis.call('ZSCORE', deadlines, id)
  if lives and till and till > s.now and not redis.call('HMGET', lock, kept)[1] then
    keepUntil(s, till)
    redis.call('PEXPIREAT', lock, s.keep)
    redis.call('PEXPIREAT', deadlines, s.keep)
    local terms = record:sub(RECORD_TERMS_AT):gsub(MIN_HOLD_TERM, '%0,' .. first, 1)
    redis.call('ZADD', deadlines, till, kept)
    redis.call('ZREM', deadlines, id)
    redis.call('HDEL', s.lock, id)
    redis.call('HSET', lock, kept, record:sub(1, CLAIM_AT - 1) .. kept .. terms, 'keep', s.keep)
    -- The owner does not re-enter a retained hold.
    if readers then forgetOwner(s, record) end
    if s.turns then tellGroup(s, record, till - s.now) end
    local spent = s.queued and spentBy(s, record, till * 1000 - since)
    if spent then redis.call('HSET', lock, 'pace', sample(s, spent)) end
    if till < s.now + record:match(WAITING, RECORD_TERMS_AT) then tellEnds(s, till - s.now) end
    return 'released'
  end
end

if not s.queued then
  giveUp(s, id, record, nil)
  if s.turns then s.groups.keepMark(s, client, client) end
  if s.taken == 0 or not readers or wants ~= '1' then redis.pcall('PUBLISH', lock .. ':unlock', 'free ' .. client) end
  if s.taken == 0 then shorten(lock, s.keep, s.clock) end
  return 'released'
end

-- functions
local spent = s.micros - record:sub(1, TOKEN_END)
if not readers then
  spent = spent * wants
elseif s.taken - wants > 0 then
  -- The hold does not end a turn (`spentBy`).
  spent = nil
end
giveUp(s, id, record, spent and sample(s, spent))
local line, passed = queue, ''
if readers then
  -- functions
  line = lineOf(s, record:sub(CLAIM_AT))
end
-- Without `vacate`, which would cost two functions more.
local unended = lapse(s, mark)
local admitted, unfinished = admit(s, 'handoff', client, client, line, {})
for i = 1, #admitted, 2 do
  local claim = admitted[i]
  if claim:sub(1, CLIENT_END) == client and (not readers or lineOf(s, claim) == line) then
    passed = passed .. ' ' .. claim:sub(1, ID_END) .. ' ' .. admitted[i + 1] .. ' ' .. claim:match(LEASE, TERMS_AT)
  end
end
if unfinished or unended then return 'unfinished' .. passed end
if passed ~= '' then return 'passed' .. passed end
return 'released'
