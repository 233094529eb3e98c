-- acquire: if the owner already holds the lock, re-enter. Otherwise, if the lock is free and no live fair waiter is
-- ahead, take the lock. Otherwise, if the mode is 'queue', join the fair queue.
--
-- Repeating a call with the same id changes nothing: an id that holds gets the same grant, and an id that is queued
-- keeps its place and counts as alive. So a lost reply does no harm (I5).
-- This script finds a lapsed lease by the server's clock, not by the expiry of a key (I1). If waiters were queued when
-- it lapsed, the first of them gets the lock, whichever client makes this call (I3, I4).
-- If the lock's key is new or was lost (clock 0), its queue may still exist. So the script looks for the queue's key.
-- HSET is the first write of a plain grant. So a server without free memory (maxmemory) refuses the grant as a whole.
-- If the holder's caller gave no name, Redis cannot know who holds the lock now: since the grant, the holder's client
-- may have passed the lock to another of its waiters (lua/mutex/pass.lua). So only calls of that client re-enter such a
-- hold.
-- A re-entry has a lease of its own, and the lock is held until the latest of its holder's leases ends. If the re-entry
-- comes from the client of the first hold, and asks for a longer lease, the first hold is prolonged to the end of that
-- lease. This is necessary because the re-entry runs inside the first hold (src/key/holds.ts).
--
-- Several independent servers may keep one lock, and a majority of them decides. Then a grant by one server is a vote,
-- and all votes of a majority must have the same token. So the client sends a floor, and a token or ticket that a
-- server issues for this call is never smaller than the floor. If the tokens still differ, the client takes the largest
-- and asks the other servers to raise theirs ('raise'). A server that missed the grant because it was down joins the
-- hold later with the majority's token ('same'). Then the hold survives the loss of another server (I8). The majority's
-- token may be smaller than this server's clock, which never goes back (I2). So in this mode, and in no other, a hold
-- may get a token that is smaller than the clock.
-- 'raise' and 'same' do not interfere with the queue: they do not hand the lock to a waiter, and do not join.
-- Requests that cross on their way get different tickets on each server, so the servers would vote for different
-- waiters. So the client gives the waiter the same ticket on each server ('place'). If the server has voted for the
-- waiter by an earlier ticket, the waiter gives this vote back and queues, and the server votes for its first waiter
-- again (I3). The waiter names the token of the vote, because a repeated request must not give a later vote back (I5).
--
-- KEYS
--   lock        HASH    the lock
--   queue?      ZSET    fair waiters by ticket
--   deadlines?  ZSET    the ends of re-entered holds, and waiters' deadlines (lua/holder.lua)
-- ARGV
--   claim       string  the caller, and what it asks for (lua/lock.lua)
--   mode?       string  'queue': join the queue if refused. A number: as 'queue', unless so many callers are queued. 'try', or absent: do not join. 'raise': if the id holds, raise its token to the floor, unless it is larger already; never take the lock. 'same': if the id holds or may re-enter, set the token to exactly the floor; take the lock only if it is free and nobody is queued; never join the queue. 'place': as 'queue', but with exactly the ticket `floor`; if the id holds with the token `returned`, end that hold first
--   floor?      string  µs, a whole number: every token or ticket issued here is at least this. Required for 'raise', 'same' and 'place', as a token of 16 digits
--   returned?   string  for 'place': the token of the hold to give back
-- Replies
--   granted     token, if the lock was free; token and ttl ms, if an earlier call with this id was granted the lock
--   succeeded   token: the previous holder's lease had lapsed
--   reentered   token, ttl ms: the owner already holds the lock
--   refused     ttl ms, position (0: not queued), ticket, ms since the holder's grant, clock (a lower bound for the tokens of later grants), followed by "~" and the pace of the lock if the caller is queued, bytes of the holder's owner, its owner and label
--   full        to a number as `mode`: how many callers are queued, '0', followed by "~" and the pace of the lock
--   absent      only to 'raise' and 'same': the id holds nothing on this server, and nothing was changed
--   unfinished  neither granted nor refused yet, because one call may pass over only so many waiters; call again
-- Invariants: I1 I2 I3 I4 I5 I8

local fields = redis.call('HMGET', lock, 'holder', 'clock', 'queued', 'keep', 'holds', 'pace')
local time = redis.call('TIME')
local second, rest = time[1], time[2] .. ''
local stamp = #rest == 6 and second .. rest or second .. ('00000' .. rest):sub(-6)
local micros = stamp + 0
local now = math.floor(micros / 1000)
local lease, last = claim:match(LEASE, TERMS_AT), (fields[2] or 0) + 0

-- Fast path: the usual case returns here, before the work that only rarer cases need. It is `makeHolder` (lua/holder.lua), for a
-- clock that is not ahead of the time.
if not fields[1] and not fields[3] and last ~= NO_CLOCK and last < micros
  and (not floor or floor + 0 <= micros and (mode == 'try' or mode == 'queue')) then
  local granted, keep, least = stamp .. ' ' .. stamp .. ' ' .. claim, now + lease + LINGER, now + 1 + MEMORY
  if keep < least then keep = least end
  if (fields[4] or 0) + 0 < keep then
    keep = keep + math.floor(MEMORY / 10)
    redis.call('HSET', lock, 'holder', granted, 'clock', stamp, 'keep', keep)
    redis.call('PEXPIREAT', lock, keep)
  else
    redis.call('HSET', lock, 'holder', granted, 'clock', stamp)
  end
  if claim:sub(TERMS_AT, NAMELESS_END) ~= NAMELESS then
    local size, names = claim:match(NAMES, TERMS_AT)
    redis.pcall('PUBLISH', lock .. ':unlock', 'entered ' .. names:sub(1, size))
  end
  return 'granted ' .. stamp
end

-- Fast path: refuses a caller without a name that does not queue. It is the end of this script, for a lock that was not
-- re-entered.
local holder = fields[1]
if holder and not fields[5] and (not mode or mode == 'try') and claim:sub(TERMS_AT, NAMELESS_END) == NAMELESS
  and holder:sub(HELD_ID_AT, HELD_ID_END) ~= claim:sub(1, ID_END) and holder:sub(HELD_ID_AT, HELD_ID_AT) ~= KEPT then
  local ends = math.floor(holder:sub(FROM_AT, FROM_END) / 1000) + holder:match(LEASE, HELD_TERMS_AT)
  if ends >= now then
    local token, known = holder:sub(1, TOKEN_END) + 0, stamp
    if token > micros then known = holder:sub(1, TOKEN_END) end
    local since = token < micros and now - math.floor(token / 1000) or 0
    local bytes, names = holder:match(NAMES, HELD_TERMS_AT)
    return 'refused ' .. ends - now .. ' 0 0 ' .. since .. ' ' .. known .. ' ' .. bytes .. ' ' .. names
  end
end

--[[cluster
if not deadlines then return redis.error_reply('ERR non local key') end
--]]
-- functions
local s = stateOf(lock, queue, deadlines, fields, stamp, micros, now)
local id = claim:sub(1, ID_END)
local held = s.holder and s.ends >= now
if held and (s.hold == id or s.holds) then
  -- functions
  local ends = endOf(s, id)
  if ends and ends >= now and mode == 'place' and s.token == returned and not s.holds then
    redis.call('HDEL', lock, 'holder')
    s.holder, held = false, false
  elseif ends and ends >= now then
    if s.queued then redis.call('ZREM', queue, claim) end
    if mode == 'same' or mode == 'raise' and floor + 0 > s.token + 0 then
      -- functions
      agree(s, floor)
    end
    return (s.hold == id and 'granted ' or 'reentered ') .. s.token .. ' ' .. ends - now
  end
end
if mode == 'raise' then return 'absent' end

if held and claim:sub(TERMS_AT, NAMELESS_END) ~= NAMELESS then
  local bytes, names = namesOf(s.holder)
  local size, own = claim:match(NAMES, TERMS_AT)
  local owner = bytes == '0' and s.hold or names:sub(1, bytes)
  local ours, theirs = s.hold:sub(1, CLIENT_END), owner:sub(1, CLIENT_END)
  if own:sub(1, size) == owner and (id:sub(1, CLIENT_END) == ours or theirs ~= ours) and s.hold:sub(1, 1) ~= KEPT then
    -- functions
    -- A re-entry has no `minHold` of its own.
    lease = claim:match(OWN_LEASE, TERMS_AT) or lease
    if mode == 'same' then agree(s, floor) end
    if s.holds then
      trim(s, 0)
      unlist(s, id)
    else
      -- If the lock's key was lost, the deadlines of the holds before that are left.
      redis.call('ZREMRANGEBYSCORE', deadlines, '-inf', '(' .. WAITER)
      redis.call('ZADD', deadlines, s.ends, s.hold)
      s.holds = NOT_LISTED
    end
    local label = own:sub(size + 1)
    s.holds = s.holds .. id .. ' ' .. #label .. ' ' .. label
    while #s.holds > MOST_LISTED do
      local _, length, from = s.holds:match(LISTED, LISTED_AT)
      s.holds = NOT_LISTED .. s.holds:sub(from + length)
    end
    local deadline = now + lease
    redis.call('ZADD', deadlines, deadline, id)
    -- The client knows only the leases that its calls have asked for, without `minHold`, and compares those.
    local asked = s.holder:match(OWN_LEASE, HELD_TERMS_AT) or s.holder:match(LEASE, HELD_TERMS_AT)
    if id:sub(1, CLIENT_END) == ours and lease + 0 > asked + 0 then
      local first = tonumber(redis.call('ZSCORE', deadlines, s.hold) or nil)
      if first and first >= now and first < deadline then redis.call('ZADD', deadlines, deadline, s.hold) end
    end
    if deadline > s.ends then prolong(s, deadline) end
    local life = keepUntil(s, deadline)
    redis.call('HSET', lock, 'holder', s.holder, 'holds', s.holds, 'keep', s.keep)
    if life then redis.call('PEXPIREAT', lock, life) end
    redis.call('PEXPIREAT', deadlines, math.max(s.ends, deadline, s.queued or 0) + LINGER)
    -- An earlier call with this id, in mode 'queue', may have put the claim into the queue. The claim is removed now,
    -- whatever the mode of this call is.
    if s.queued then redis.call('ZREM', queue, claim) end
    return 'reentered ' .. s.token .. ' ' .. lease
  end
end

local leftBehind = s.clock == NO_CLOCK and redis.call('EXISTS', queue) == 1
if leftBehind then s.queued = LIFE_UNKNOWN end

if mode == 'same' then
  -- functions
  if held or s.queued then return 'absent' end
  if s.holder then s.clock = math.max(s.clock, s.token + BLOCK) end
  if s.holds then forgetHolds(s) end
  s.clock = math.max(s.clock, floor + 0)
  makeHolder(s, claim, lease, floor, nil)
  if s.clock > floor + 0 then redis.call('HSET', lock, 'clock', string.format('%.0f', s.clock)) end
  return 'granted ' .. floor
end
-- The next token or ticket is larger than `clock` by at least 1, so it is at least the floor.
if floor and s.clock < floor - 1 then s.clock = floor - 1 end

local ticket, position = NO_TICKET, NOT_QUEUED
local most = mode and tonumber(mode)
local joins = mode == 'queue' or mode == 'place' or most
-- If nobody holds, the queue is not counted as it is: its first live waiter is about to get the lock, and the dead ones
-- before it are about to be passed over. So a call with a limit hands the lock on first, and then counts who is left.
local early = most and s.queued and not held
repeat
  local again = early
  if joins and not early and (held or s.queued) then
    if most then
      -- functions
      local crowd = redis.call('ZCOUNT', queue, '-inf', '+inf')
      if crowd >= most and crowd > 0 then
        -- A caller that is queued keeps its place.
        crowd = redis.call('ZSCORE', queue, claim) and -1 or countLiving(s, queue, 0, crowd, false)
      end
      if crowd >= most then return 'full ' .. crowd .. ' 0' .. (s.pace and '~' .. s.pace or '') end
    end
    -- functions
    local ttl, headStart = claim:match(WAITING, TERMS_AT)
    local next = tick(s)
    ticket = headStart == '0' and next or string.format('%.0f', s.clock - headStart)
    -- A waiter of which no heartbeat is recorded counts as alive for its `waiterTtl` after its ticket. A ticket that
    -- other servers have issued may be older than that. So the call counts as a heartbeat, as that of a waiter in the
    -- queue does.
    local joined
    if mode == 'place' then
      redis.call('ZADD', queue, floor, claim)
    else
      joined = redis.call('ZADD', queue, 'NX', ticket, claim) == 1
    end
    position = redis.call('ZRANK', queue, claim) + 1
    enqueue(s, queue, ttl, next, position == 1)
    local till = s.holds and math.max(s.ends, s.queued) + LINGER or s.queued
    if not joined then
      ticket = string.format('%.0f', redis.call('ZSCORE', queue, claim))
      redis.call('ZADD', deadlines, WAITER + now + ttl, id)
      redis.call('PEXPIREAT', deadlines, till)
    end
    --[[cluster
    notePlace(s, id, ttl, till)
    --]]
  end

  if not held then
    -- functions
    local taken = s.holder and 'succeeded ' or 'granted '
    if s.holder then s.clock = math.max(s.clock, s.token + BLOCK) end
    local successor, unfinished
    if s.queued then successor, unfinished = promote(s, s.holder and 'expiry' or 'handoff', id, nil) end
    if unfinished then return 'unfinished' end
    if s.holds then forgetHolds(s) end
    if not successor then makeHolder(s, claim, lease, tick(s), nil) end
    if s.hold == id then return taken .. s.token end
    held = true
    if leftBehind and (early or not joins) then redis.call('HSET', lock, 'queued', s.queued) end
    if position ~= NOT_QUEUED then position = redis.call('ZRANK', queue, claim) + 1 end
  end
  early = false
until not again

-- A lower bound for the tokens of later grants: the larger of the holder's token and the present time. Not the clock, for two
-- reasons. In mode 'try', it may be as large as the floor of this call. The floor is not stored, so a later token may be
-- smaller. And the clock is a number: to make it a text would cost more than a Redis command.
local since, known = math.floor(s.token / 1000), s.token + 0 > micros and s.token or stamp
since = since < now and now - since or 0
if s.holds then
  -- functions
  show(s)
end
if position ~= NOT_QUEUED and s.pace then known = known .. '~' .. s.pace end
local bytes, names = namesOf(s.holder)
return 'refused ' .. s.ends - now .. ' ' .. position .. ' ' .. ticket .. ' ' .. since .. ' ' .. known .. ' ' .. bytes .. ' ' .. names
