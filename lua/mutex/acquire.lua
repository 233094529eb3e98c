-- acquire: re-enter if the owner holds the lock; else take it if it is free and no live fair waiter is ahead; else,
-- when asked to queue, join the fair queue.
--
-- Repeating it with the same id changes nothing: an id that holds gets the same grant, an id that is queued keeps its
-- place, and is known to live. That is what makes a lost reply harmless (I5). A lapsed lease is found here, by the
-- server's clock, not by the expiry of a key (I1); where it lapsed with waiters queued, the first of them gets the lock,
-- whoever asks (I3, I4).
-- A key that is new or was lost (clock 0) may have left its queue behind: then the queue itself is asked.
-- HSET is the first write of a plain grant, so a server at maxmemory refuses it whole.
-- An owner without a name is known to its own client only, which may have passed the lock on since (lua/mutex/pass.lua).
-- A re-entry has a lease of its own, and the lock is held until the latest of its holder's leases ends. One that is longer than that
-- of the first hold, of the same client, raises that, too: the caller around it has to last as long (src/lease/renewal.ts).
--
-- A lock may be kept by several independent servers, of which a majority decides. Then a grant by one server is a vote, and
-- all votes of a majority have to bear the same token. So the client names a floor: a server that is free to choose a token or a
-- ticket chooses the floor, unless its own clock is ahead of it already. Where the tokens differ nevertheless, the client
-- takes the largest and asks the other servers to raise theirs ('raise'). A server that missed the grant while it was
-- away joins the hold later ('same'), with the token that the majority has; then the loss of another server does not end
-- the hold (I8). Only this token may be below the clock, which never goes back (I2).
-- Both modes leave the queue to those who wait: neither passes the lock on to a waiter, nor joins.
--
-- KEYS
--   lock        HASH    the lock; its other keys follow from it (lua/shared/keys.lua)
-- ARGV
--   claim       string  who asks, and what for (include/claim.lua)
--   mode?       string  'queue': join the queue if refused. 'try': do not, as without a mode. 'raise': if the id holds, its token becomes the floor, unless it is larger; never take the lock. 'same': its token becomes the floor exactly; re-enter, but take the lock only if nobody is queued, and never queue
--   floor?      string  µs, a whole number: no token or ticket that is issued here is smaller. 'raise' and 'same' have to have it, as a token of 16 digits
-- Replies
--   granted     token: the lock was free. Token, ttl ms: an earlier call with this id has got it
--   succeeded   token: taken over from a holder whose lease had lapsed
--   reentered   token, ttl ms: the owner holds it already
--   refused     ttl ms, position (0: not queued), ticket, held for ms, clock (what Redis grants later is above it), bytes of the holder's owner, its owner and label
--   absent      only to 'raise' and 'same': the id holds nothing here, and nothing was changed
--   unfinished  neither yet: so many waiters were passed over that the server had to do something else first; ask again
-- Invariants: I1 I2 I3 I4 I5 I8
-- Constants
--   NO_TICKET = '0'   in a refusal: it is not queued
--   NOT_QUEUED = 0    the same, as its position
--   LIFE_UNKNOWN = 0  `queued`: there is a queue, but the record of how long its keys live was lost
--
-- include: read
-- include: time
-- include: numbers
local lease = claim:match(LEASE, TERMS_AT)

-- The usual case stands before everything that it does not need.
if not holder and not queued and clock ~= NO_CLOCK and (not floor or mode == 'try' or mode == 'queue') then
  if floor then clock = math.max(clock, floor - 1) end
  local ends
  -- include: clock
  -- include: grant { token = tick }
  return 'granted ' .. tick
end

-- include: keys
-- include: holder
-- include: ends
local id = claim:sub(1, ID_END)
local held = holder and ends >= now
if held then
  -- include: live
  if lives and lives >= now then
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
  if self == owner and (id:sub(1, CLIENT_END) == ours or theirs ~= ours) then
    if mode == 'same' then
      -- include: agree
    end
    if holds then
      -- include: trim { timetable = all }
    else
      redis.call('ZADD', all, ends, hold)
      redis.call('HSET', lock, 'holds', 1)
    end
    local deadline = now + lease
    redis.call('ZADD', all, deadline, id)
    if id:sub(1, CLIENT_END) == ours and tonumber(lease) > tonumber(holder:match(LEASE, HELD_TERMS_AT)) then
      local first = tonumber(redis.call('ZSCORE', all, hold) or nil)
      if first and first >= now and first < deadline then redis.call('ZADD', all, deadline, hold) end
    end
    if deadline > ends then
      -- include: prolong
      redis.call('HSET', lock, 'holder', holder)
    end
    -- include: life
    if life then
      redis.call('HSET', lock, 'keep', life)
      redis.call('PEXPIREAT', lock, life)
    end
    redis.call('PEXPIREAT', all, keep)
    -- Whatever this request asks for: an earlier or later one of the same caller may have joined the queue.
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
    -- include: grant { token = floor }
    if clock > tonumber(floor) then redis.call('HSET', lock, 'clock', string.format('%.0f', clock)) end
    return 'granted ' .. floor
  end
  -- What is issued next is larger by 1 at least.
  clock = math.max(clock, floor - 1)
end

local ticket, position = NO_TICKET, NOT_QUEUED
if mode == 'queue' and (held or queued) then
  local ttl, headStart = claim:match(WAITING, TERMS_AT)
  -- include: clock
  ticket = headStart == '0' and tick or string.format('%.0f', clock - headStart)
  local joined = redis.call('ZADD', queue, 'NX', ticket, claim) == 1
  position = redis.call('ZRANK', queue, claim) + 1
  -- include: enqueue { fresh = position == 1 }
  if not joined then
    ticket = string.format('%.0f', redis.call('ZSCORE', queue, claim))
    redis.call('ZADD', expiry, now + ttl, id)
    redis.call('PEXPIREAT', expiry, queued)
  end
  -- include: place
end

if not held then
  local taken = holder and 'succeeded ' or 'granted '
  if holder then
    -- include: unreported
  end
  -- include: forget
  if queued then
    -- include: promote { reason = holder and 'expiry' or 'handoff', mine = id }
    if unfinished then return 'unfinished' end
    holder = successor and holder
  else
    holder = false
  end
  if not holder then
    -- include: clock
    token, hold = tick, id
    -- include: grant
  end
  if hold == id then return taken .. token end
  if leftBehind and mode ~= 'queue' then redis.call('HSET', lock, 'queued', queued) end
  if mode == 'queue' then position = redis.call('ZRANK', queue, claim) + 1 end
end

-- Not the clock, which knows nothing of the tokens that the holder may have issued by itself.
local since, known = math.max(0, now - math.floor(token / 1000)), tonumber(token) > micros and token or stamp
-- include: claim
return 'refused ' .. ends - now .. ' ' .. position .. ' ' .. ticket .. ' ' .. since .. ' ' .. known .. ' ' .. bytes .. ' ' .. names
