-- acquire: if enough permits are free for the claim, and no live fair waiter is ahead, take them. Otherwise, if the
-- mode is 'queue', join the fair queue.
--
-- Repeating a call with the same id changes nothing: an id that holds gets the same grant, and an id that is queued
-- keeps its place (I5). This script finds lapsed holds by the server's clock (I1). Their permits go to the waiters in
-- the queue first, whichever client makes this call (I3, I4).
-- If the lock's key is new or was lost (clock 0), its queue may still exist. So the script looks for the queue's key.
-- If the deadlines were lost, all holds are lost too (`lapse`).
-- Lapsed holds end even if enough permits are free without theirs. So the records of dead holders do not pile up (I7).
-- HSET is the first write of a plain grant. So a server without free memory (maxmemory) refuses the grant as a whole.
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
--   claim       string  the caller, and what it asks for
--   mode?       string  'queue': join the queue if refused. A number: as 'queue', unless so many callers are queued. 'try', or absent: do not join
--   waits?      string  present: the client has received an answer to an earlier request with this id, so this call was waiting before its owner began to hold. Such a call to a read-write lock is never refused as a deadlock
-- Replies
--   granted     token (with numbers, see `giveNumbers`), if enough permits were free; token and ttl ms, if an earlier call with this id was granted them
--   succeeded   token: enough permits were free, after a lease had lapsed
--   refused     ttl ms, position (0: not queued; with groups, see `placeInGroup`), ticket, ms since a holder's grant, clock (a lower bound for the tokens of later grants), followed by the pace of the lock if the caller is queued (`paceOf`), bytes of that holder's owner "/" the number of permits that the lock has according to the holder's claim "/" the permits taken "/" the holds, its owner and label
--   full        to a number as `mode`: how many callers are queued, '0' (with groups, the place that the caller would have) and the pace of the lock (`paceOf`)
--   reentered   token, ttl ms: of a read-write lock: the owner already holds it. If an id follows, it is the id of the owner's first hold, which lasts at least as long as this one
--   deadlock    of a read-write lock: the owner reads, and would wait for itself
--   unfinished  neither granted nor refused yet, because one call may pass over only so many waiters or lapsed holds; call again
-- Invariants: I1 I2 I3 I4 I5

local id = claim:sub(1, ID_END)
local fields = redis.call('HMGET', lock, 'taken', 'clock', 'queued', 'keep', 'pace', id)
local time = redis.call('TIME')
local second, rest = time[1], time[2] .. ''
local stamp = #rest == 6 and second .. rest or second .. ('00000' .. rest):sub(-6)
local micros = stamp + 0
local now = math.floor(micros / 1000)
local record, mark, last, taken = fields[6], fields[3], (fields[2] or 0) + 0, (fields[1] or 0) + 0
local lease, expiry, headStart, wants, of, more = claim:match(TERMS, TERMS_AT)
local named = readers and claim:sub(TERMS_AT, NAMELESS_END) ~= NAMELESS

-- Fast path: the usual case returns here, before the work that only rarer cases need. It is `writeHold` (lua/permits.lua), for
-- a clock that is not ahead of the time, and without numbers, groups and owners.
if not (record or mark or named) and more == '' and last ~= NO_CLOCK and last < micros and taken + wants <= of + 0 then
  local first = taken > 0 and redis.call('ZRANGE', deadlines, 0, 0, 'WITHSCORES')[2]
  if taken == 0 or first and first + 0 >= now then
    local ends, least, known = now + lease, now + 1 + MEMORY, (fields[4] or 0) + 0
    local keep = ends + LINGER
    if keep < least then keep = least end
    keep = known < keep and keep + math.floor(MEMORY / 10) or known
    redis.call('HSET', lock, id, stamp .. ' ' .. claim, 'taken', taken + wants, 'clock', stamp, 'keep', keep)
    redis.call('ZADD', deadlines, ends, id)
    redis.call('PEXPIREAT', deadlines, keep)
    if known < keep then redis.call('PEXPIREAT', lock, keep) end
    if lease * 3 < expiry + 0 then redis.pcall('PUBLISH', lock .. ':unlock', 'ends ' .. lease) end
    return 'granted ' .. stamp
  end
end

--[[cluster
if not none then return redis.error_reply('ERR non local key') end
--]]
-- functions
local s = permitsOf(lock, queue, deadlines, readers, fields, stamp, micros, now)
local rival
if turns and (mark and not s.queued or more:find(';', 1, true)) then
  -- functions
  local group = groupOf(claim)
  local told = group ~= '' and redis.call('HMGET', shares, 'l' .. group, 'w' .. group)
  rival = told and told[1] and told[1] .. ';' .. (told[2] or 1)
  withGroups(s, waiting, turns, shares, mark)
end
if named and taken > 0 then
  -- functions
  local reply = reEnter(s, claim, wants, record, mark, not waits)
  if reply then return reply end
end

-- As above, for all kinds of calls.
local may, pending = mayTake(s, claim, wants, of)
if may and not record and s.clock ~= NO_CLOCK then
  local first = s.taken > 0 and redis.call('ZRANGE', deadlines, 0, 0, 'WITHSCORES')[2]
  if s.taken == 0 or first and first + 0 >= now then
    -- functions
    take(s, claim, wants)
    local token = tick(s)
    local answer, _, brief = writeHold(s, claim, token, token)
    if brief then redis.pcall('PUBLISH', lock .. ':unlock', 'ends ' .. lease) end
    return 'granted ' .. answer
  end
end

local before = s.taken
local unended, word, holds = lapse(s, mark)
if unended then return 'unfinished' end
if record then
  local lives = tonumber(redis.call('ZSCORE', deadlines, id) or nil)
  if lives then
    -- functions
    if s.queued then
      quit(s, claim)
      admit(s, word, nil, nil, nil, {})
    end
    return 'granted ' .. record:sub(1, TOKEN_END) .. numbersOf(record) .. ' ' .. lives - now
  end
end

local granted = word == 'expiry' and 'succeeded ' or 'granted '
-- With groups, `withGroups` has looked for queues that are left.
local leftBehind = s.clock == NO_CLOCK and not s.turns
  and (redis.call('EXISTS', queue) == 1 or readers and redis.call('EXISTS', readers) == 1)
if leftBehind then s.queued = LIFE_UNKNOWN end

local ticket, most, line = NO_TICKET, mode and tonumber(mode), queue
if s.otherLine then
  -- functions
  line = lineOf(s, claim)
end
local joins = mode == 'queue' or most
if s.taken ~= before or leftBehind then may, pending = mayTake(s, claim, wants, of) end
-- While permits are free, the queue is not counted as it is: the waiters that fit are about to be admitted, and the dead
-- ones before them are about to be passed over. So a call with a limit admits them first, and then counts who is left.
local early = most and pending
repeat
  local again = early
  if joins and not early and not may then
    if most then
      -- functions
      local crowd = crowdIn(s, claim, most)
      if crowd >= most then
        return 'full ' .. crowd .. ' ' .. (s.turns and placeOf(s, claim) or '0') .. paceOf(s)
      end
    end
    -- functions
    local latest, joined = tick(s), nil
    ticket = headStart == '0' and latest or string.format('%.0f', s.clock - headStart)
    if s.turns then
      -- functions
      ticket, joined = joinGroup(s, claim, ticket, expiry)
    else
      joined = redis.call('ZADD', line, 'NX', ticket, claim) == 1
      if not joined then ticket = string.format('%.0f', redis.call('ZSCORE', line, claim)) end
    end
    enqueue(s, line, expiry, latest, redis.call('ZCOUNT', line, '-inf', '+inf') == 1)
    if s.otherLine then
      -- functions
      linger(s, line)
    end
    if not joined then
      redis.call('ZADD', deadlines, WAITER + now + expiry, id)
      redis.call('PEXPIREAT', deadlines, s.keep)
    end
    --[[cluster
    notePlace(s, id, expiry, s.keep)
    --]]
  end

  if s.queued then
    -- functions
    local admitted, unfinished = admit(s, word, nil, id, line, {})
    for i = 1, #admitted, 2 do
      if admitted[i] == claim then return granted .. admitted[i + 1] end
    end
    if unfinished then return 'unfinished' end
    holds = holds + math.floor(#admitted / 2)
  end
  -- A caller that is queued was not admitted, so it may not.
  if ticket == NO_TICKET and mayTake(s, claim, wants, of) then
    -- functions
    take(s, claim, wants)
    local token, latest = nextToken(s, claim, {})
    return granted .. (writeHold(s, claim, token, latest))
  end
  if leftBehind and s.queued and (early or not joins) then redis.call('HSET', lock, 'queued', s.queued) end
  early = false
until not again

local place, known = NOT_QUEUED, s.clock > micros and string.format('%.0f', s.clock) or stamp
if ticket ~= NO_TICKET and s.turns then
  -- functions
  place = placeInGroup(s, claim)
  if s.pace then known = known .. paceOfGroups(s) end
elseif ticket ~= NO_TICKET and readers then
  -- functions
  place, known = placeOf(s, claim), known .. paceOf(s)
elseif ticket ~= NO_TICKET then
  place = redis.call('ZRANK', queue, claim) + 1
  if s.pace then known = known .. '~' .. s.pace end
end
local ttl, since, bytes, names, among = firstEnd(s)
if rival then among = (among or '') .. ';' .. rival end
local sum = s.taken
if sum >= MANY then
  -- functions
  sum = exactly(sum)
end
bytes = bytes .. '/' .. (among or of) .. '/' .. sum .. '/' .. holds
return 'refused ' .. ttl .. ' ' .. place .. ' ' .. ticket .. ' ' .. since .. ' ' .. known .. ' ' .. bytes .. ' ' .. names
