-- acquire: if enough permits are free for the claim, and no live fair waiter is ahead, take them. Otherwise, if the
-- mode is 'queue', join the fair queue.
--
-- Repeating a call with the same id changes nothing: an id that holds gets the same grant, and an id that is queued
-- keeps its place (I5). This script finds lapsed holds by the server's clock (I1). Their permits go to the waiters in
-- the queue first, whichever client makes this call (I3, I4).
-- If the lock's key is new or was lost (clock 0), its queue may still exist. So the script looks for the queue's key.
-- If the deadlines were lost, all holds are lost too (lua/shared/lapse.lua).
-- Lapsed holds end even if enough permits are free without theirs. So the records of dead holders do not pile up (I7).
-- HSET is the first write of a plain grant. So a server without free memory (maxmemory) refuses the grant as a whole.
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
--   claim       string  the caller, and what it asks for
--   mode?       string  'queue': join the queue if refused. A number: as 'queue', unless so many callers are queued. 'try', or absent: do not join
--   waits?      string  present: the client has received an answer to an earlier request with this id, so this call was waiting before its owner began to hold. Such a call to a read-write lock is never refused as a deadlock
-- Replies
--   granted     token (with numbers, see lua/permits/semaphore/number.lua), if enough permits were free; token and ttl ms, if an earlier call with this id was granted them
--   succeeded   token: enough permits were free, after a lease had lapsed
--   refused     ttl ms, position (0: not queued; with groups, see lua/permits/semaphore/groups/position.lua), ticket, ms since a holder's grant, clock (a lower bound for the tokens of later grants), followed by the pace of the lock if the caller is queued (lua/permits/read-write/pacing.lua), bytes of that holder's owner "/" the number of permits that the lock has according to the holder's claim "/" the permits taken "/" the holds, its owner and label
--   full        to a number as `mode`: how many callers are queued, '0' (with groups, the place that the caller would have) and the pace of the lock (lua/permits/read-write/pacing.lua)
--   unfinished  neither granted nor refused yet, because one call may pass over only so many waiters or lapsed holds; call again
-- Invariants: I1 I2 I3 I4 I5
-- Constants
--   NO_TICKET = '0'   the ticket in a refusal of a caller that is not queued
--   NOT_QUEUED = 0    the position in a refusal of a caller that is not queued
--   NEVER_FULL = -1000000000  fewer waiters than any limit
--   LIFE_UNKNOWN = 0  the value of `queued` if there is a queue, but the record of its keys' life was lost
local id = claim:sub(1, ID_END)
-- include: permits
-- include: mode { call = { claim } }
-- include: time
local wants, of = claim:match(WANTS, TERMS_AT)
-- Whether the call may be nested in a hold of its owner. Only the first request of a call may be.
local nested = not waits
-- include: re-enter

-- Fast path: the usual case returns here, before the work that only rarer cases need.
-- include: may
local usual = not record and clock ~= NO_CLOCK and may
local first = usual and taken > 0 and redis.call('ZRANGE', deadlines, 0, 0, 'WITHSCORES')[2]
if usual and (taken == 0 or first and first + 0 >= now) then
  -- include: take
  -- include: clock
  -- include: hold { token = tick }
  if brief then redis.pcall('PUBLISH', lock .. ':unlock', 'ends ' .. lease) end
  return 'granted ' .. answer
end

-- include: queues
-- include: line
-- include: lapse
if more then return 'unfinished' end
if record then
  local lives = tonumber(redis.call('ZSCORE', deadlines, id) or nil)
  if lives then
    if queued then
      -- include: quit
      -- include: admit { by = nil, mine = nil, asks = nil, deaf = {} }
    end
    -- include: numbered
    return 'granted ' .. record:sub(1, TOKEN_END) .. numbers .. ' ' .. lives - now
  end
end

local granted = word == 'expiry' and 'succeeded ' or 'granted '
local leftBehind = false
if clock == NO_CLOCK then
  -- include: remains
  leftBehind = remains
end
if leftBehind then queued = LIFE_UNKNOWN end

local ticket, most = NO_TICKET, mode and tonumber(mode)
local joins = mode == 'queue' or most
-- include: may
-- While permits are free, the queue is not counted as it is: the waiters that fit are about to be admitted, and the dead
-- ones before them are about to be passed over. So a call with a limit admits them first, and then counts who is left.
local early = most and pending
repeat
  local again = early
  if joins and not early and not may then
    if most then
      local before = 0
      for _, queue in ipairs(lines) do
        -- include: crowd { most = most - before }
        -- A caller that is queued keeps its place.
        before = crowd < 0 and NEVER_FULL or before + crowd
      end
      if before >= most then
        -- include: pacing
        -- include: foreseen
        return 'full ' .. before .. ' ' .. foreseen .. paced
      end
    end
    local ttl, headStart = claim:match(WAITING, TERMS_AT)
    -- include: clock
    ticket = headStart == '0' and tick or string.format('%.0f', clock - headStart)
    -- include: join
    -- include: enqueue { queue = line, fresh = redis.call('ZCOUNT', line, '-inf', '+inf') == 1 }
    -- include: linger
    if not joined then
      redis.call('ZADD', deadlines, WAITER + now + ttl, id)
      redis.call('PEXPIREAT', deadlines, keep)
    end
    -- include: place
  end

  if queued then
    -- include: admit { by = nil, mine = id, asks = line, deaf = {} }
    for i = 1, #admitted, 2 do
      if admitted[i] == claim then return granted .. admitted[i + 1] end
    end
    if unfinished then return 'unfinished' end
    holds = holds + math.floor(#admitted / 2)
  end
  -- include: may
  if may then
    -- include: take
    -- include: token { grants = {} }
    -- include: hold
    return granted .. answer
  end
  if leftBehind and queued and (early or not joins) then redis.call('HSET', lock, 'queued', queued) end
  early = false
until not again

local place = NOT_QUEUED
if ticket ~= NO_TICKET then
  -- include: position
  place = position
end
local known = string.format('%.0f', math.max(clock, micros))
if place ~= NOT_QUEUED then
  -- include: pacing
  known = known .. paced
end
-- include: first-end
bytes = bytes .. '/' .. (among or of) .. '/' .. string.format('%.0f', taken) .. '/' .. holds
return 'refused ' .. ttl .. ' ' .. place .. ' ' .. ticket .. ' ' .. since .. ' ' .. known .. ' ' .. bytes .. ' ' .. names
