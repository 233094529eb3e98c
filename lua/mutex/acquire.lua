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
--   deadlines?  ZSET    see lua/shared/live.lua
-- ARGV
--   claim       string  the caller, and what it asks for (lua/shared/claim.lua)
--   mode?       string  'queue': join the queue if refused. A number: as 'queue', unless so many callers are queued. 'try', or absent: do not join. 'raise': if the id holds, raise its token to the floor, unless it is larger already; never take the lock. 'same': if the id holds or may re-enter, set the token to exactly the floor; take the lock only if it is free and nobody is queued; never join the queue. 'place': as 'queue', but with exactly the ticket `floor`; if the id holds with the token `returned`, end that hold first
--   floor?      string  µs, a whole number: every token or ticket issued here is at least this. Required for 'raise', 'same' and 'place', as a token of 16 digits
--   returned?   string  for 'place': the token of the hold to give back
-- Replies
--   granted     token, if the lock was free; token and ttl ms, if an earlier call with this id was granted the lock
--   succeeded   token: the previous holder's lease had lapsed
--   reentered   token, ttl ms: the owner already holds the lock
--   refused     ttl ms, position (0: not queued), ticket, ms since the holder's grant, clock (a lower bound for the tokens of later grants), followed by the pace of the lock if the caller is queued (lua/shared/paced.lua), bytes of the holder's owner, its owner and label
--   full        to a number as `mode`: how many callers are queued, '0' and the pace of the lock (lua/shared/paced.lua)
--   absent      only to 'raise' and 'same': the id holds nothing on this server, and nothing was changed
--   unfinished  neither granted nor refused yet, because one call may pass over only so many waiters; call again
-- Invariants: I1 I2 I3 I4 I5 I8
-- Constants
--   MOST_LISTED = 4000  characters of `holds`. If it has more, the oldest re-entries are not listed any more
--   NO_TICKET = '0'   the ticket in a refusal of a caller that is not queued
--   NOT_QUEUED = 0    the position in a refusal of a caller that is not queued
--   LIFE_UNKNOWN = 0  the value of `queued` if there is a queue, but the record of its keys' life was lost
--
-- include: read
-- include: time
-- include: numbers
local lease = claim:match(LEASE, TERMS_AT)

-- Fast path: the usual case returns here, before the work that only rarer cases need.
if not holder and not queued and clock ~= NO_CLOCK and (not floor or mode == 'try' or mode == 'queue') then
  if floor then clock = math.max(clock, floor - 1) end
  local ends
  -- include: clock
  -- include: grant { token = tick, sampled = nil }
  return 'granted ' .. tick
end

-- include: keys { given = deadlines }
-- include: holder
-- include: ends
local id = claim:sub(1, ID_END)
local held = holder and ends >= now
if held then
  -- include: live
  if lives and lives >= now and mode == 'place' and token == returned and not holds then
    redis.call('HDEL', lock, 'holder')
    holder, held = false, false
  elseif lives and lives >= now then
    if queued then redis.call('ZREM', queue, claim) end
    if mode == 'same' or mode == 'raise' and tonumber(floor) > tonumber(token) then
      -- include: agree
    end
    return (hold == id and 'granted ' or 'reentered ') .. token .. ' ' .. lives - now
  end
end
if mode == 'raise' then return 'absent' end

if held and claim:sub(TERMS_AT, NAMELESS_END) ~= NAMELESS then
  -- include: claim
  local size, rest = claim:match(NAMES, TERMS_AT)
  local self, owner = rest:sub(1, size), bytes == '0' and hold or names:sub(1, bytes)
  local ours, theirs = hold:sub(1, CLIENT_END), owner:sub(1, CLIENT_END)
  if self == owner and (id:sub(1, CLIENT_END) == ours or theirs ~= ours) and hold:sub(1, 1) ~= KEPT then
    -- A re-entry has no `minHold` of its own.
    lease = claim:match(OWN_LEASE, TERMS_AT) or lease
    if mode == 'same' then
      -- include: agree
    end
    if holds then
      -- include: trim { from = 0 }
      -- include: unlist
    else
      -- If the lock's key was lost, the deadlines of the holds before that are left.
      redis.call('ZREMRANGEBYSCORE', deadlines, '-inf', '(' .. WAITER)
      redis.call('ZADD', deadlines, ends, hold)
      holds = NOT_LISTED
    end
    local label = rest:sub(size + 1)
    holds = holds .. id .. ' ' .. #label .. ' ' .. label
    while #holds > MOST_LISTED do
      local _, length, from = holds:match(LISTED, LISTED_AT)
      holds = NOT_LISTED .. holds:sub(from + length)
    end
    local deadline = now + lease
    redis.call('ZADD', deadlines, deadline, id)
    -- The client knows only the leases that its calls have asked for, without `minHold`, and compares those.
    local asked = holder:match(OWN_LEASE, HELD_TERMS_AT) or holder:match(LEASE, HELD_TERMS_AT)
    if id:sub(1, CLIENT_END) == ours and tonumber(lease) > tonumber(asked) then
      local first = tonumber(redis.call('ZSCORE', deadlines, hold) or nil)
      if first and first >= now and first < deadline then redis.call('ZADD', deadlines, deadline, hold) end
    end
    if deadline > ends then
      -- include: prolong
    end
    -- include: life
    redis.call('HSET', lock, 'holder', holder, 'holds', holds, 'keep', keep)
    if life then redis.call('PEXPIREAT', lock, life) end
    redis.call('PEXPIREAT', deadlines, math.max(ends, deadline, queued or 0) + LINGER)
    -- An earlier call with this id, in mode 'queue', may have put the claim into the queue. The claim is removed now,
    -- whatever the mode of this call is.
    if queued then redis.call('ZREM', queue, claim) end
    return 'reentered ' .. token .. ' ' .. lease
  end
end

local leftBehind = clock == NO_CLOCK and redis.call('EXISTS', queue) == 1
if leftBehind then queued = LIFE_UNKNOWN end

if floor then
  if mode == 'same' then
    if held or queued then return 'absent' end
    if holder then
      -- include: unreported
    end
    -- include: forget
    clock = math.max(clock, tonumber(floor))
    -- include: grant { token = floor, sampled = nil }
    if clock > tonumber(floor) then redis.call('HSET', lock, 'clock', string.format('%.0f', clock)) end
    return 'granted ' .. floor
  end
  -- The next token or ticket is larger than `clock` by at least 1, so it is at least the floor.
  clock = math.max(clock, floor - 1)
end

local ticket, position = NO_TICKET, NOT_QUEUED
local most = mode and tonumber(mode)
local joins = mode == 'queue' or mode == 'place' or most
-- If nobody holds, the queue is not counted as it is: its first live waiter is about to get the lock, and the dead ones
-- before it are about to be passed over. So a call with a limit hands the lock on first, and then counts who is left.
local early = most and queued and not held
repeat
  local again = early
  if joins and not early and (held or queued) then
    if most then
      -- include: crowd
      if crowd >= most then
        -- include: paced
        return 'full ' .. crowd .. ' 0' .. paced
      end
    end
    local ttl, headStart = claim:match(WAITING, TERMS_AT)
    -- include: clock
    ticket = headStart == '0' and tick or string.format('%.0f', clock - headStart)
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
    -- include: enqueue { fresh = position == 1 }
    local till = holds and math.max(ends, queued) + LINGER or queued
    if not joined then
      ticket = string.format('%.0f', redis.call('ZSCORE', queue, claim))
      redis.call('ZADD', deadlines, WAITER + now + ttl, id)
      redis.call('PEXPIREAT', deadlines, till)
    end
    -- include: place { keep = till }
  end

  if not held then
    local taken = holder and 'succeeded ' or 'granted '
    if holder then
      -- include: unreported
    end
    if queued then
      -- include: promote { reason = holder and 'expiry' or 'handoff', mine = id, sampled = nil }
      if unfinished then return 'unfinished' end
      holder = successor and holder
    else
      holder = false
    end
    -- include: forget
    if not holder then
      -- include: clock
      token, hold = tick, id
      -- include: grant { sampled = nil }
    end
    if hold == id then return taken .. token end
    held = true
    if leftBehind and (early or not joins) then redis.call('HSET', lock, 'queued', queued) end
    if position ~= NOT_QUEUED then position = redis.call('ZRANK', queue, claim) + 1 end
  end
  early = false
until not again

-- `known` becomes the field `clock` of the reply: a lower bound for the tokens of later grants. It is the larger of the
-- holder's token and the present time. The variable `clock` is not used, for two reasons. In mode 'try', it may be as
-- large as the floor of this call. The floor is not stored, so a later token may be smaller. And `clock` is a number:
-- to make it a text would cost more than a Redis command, while `token` and `stamp` are texts already.
local since, known = math.max(0, now - math.floor(token / 1000)), tonumber(token) > micros and token or stamp
-- include: shown
-- include: claim
if position ~= NOT_QUEUED then
  -- include: paced
  known = known .. paced
end
return 'refused ' .. ends - now .. ' ' .. position .. ' ' .. ticket .. ' ' .. since .. ' ' .. known .. ' ' .. bytes .. ' ' .. names
