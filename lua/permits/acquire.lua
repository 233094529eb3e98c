-- acquire: take what the claim wants, if so much is free and no live fair waiter is ahead; else, when asked to queue, join the
-- fair queue.
--
-- Repeating it with the same id changes nothing: an id that holds gets the same grant, an id that is queued keeps its
-- place (I5). Holds that have lapsed are found here, by the server's clock (I1); what they leave goes to the queue
-- first, whoever asks (I3, I4). A key that is new or was lost (clock 0) may have left its queue behind: then the queue itself is asked.
-- Where the deadlines were lost, the holds were, too (lua/shared/lapse.lua).
-- The first write of a plain grant is HSET, so a server at maxmemory refuses it whole.
--
-- KEYS
--   lock        HASH    the lock; its other keys follow from it (lua/shared/deadlines.lua, and queues.lua of its kind)
-- ARGV
--   claim       string  who asks, and what for
--   mode?       string  'queue': join the queue if refused
-- Replies
--   granted     token: so much was free. Token, ttl ms: an earlier call with this id has got it
--   succeeded   token: the end of a lease has made room
--   refused     ttl ms, position (0: not queued), ticket, held for ms, clock (what Redis grants later is above it), bytes of a holder's owner (and "/", of how many permits it wanted some, where the claim says another number), its owner and label
--   unfinished  neither yet: so many waiters or lapsed holds were passed over that the server had to do something else first; ask again
-- Invariants: I1 I2 I3 I4 I5
-- Constants
--   NO_TICKET = '0'   in a refusal: it is not queued
--   NOT_QUEUED = 0    the same, as its position
--   LIFE_UNKNOWN = 0  `queued`: there is a queue, but the record of how long its keys live was lost
local id = claim:sub(1, ID_END)
-- include: permits
-- include: time
local wants, of = claim:match(WANTS, TERMS_AT)
-- include: deadlines
-- include: re-enter

-- The usual case stands before everything that it does not need.
local usual = not record and not queued and clock ~= NO_CLOCK and taken + wants <= of + 0
if usual and (taken == 0 or redis.call('EXISTS', deadlines) == 1) then
  taken = taken + wants
  -- include: clock
  -- include: hold { token = tick }
  return 'granted ' .. tick
end

-- include: queues
-- include: line
-- include: lapse
if more then return 'unfinished' end
if record then
  local lives = tonumber(redis.call('ZSCORE', deadlines, id) or nil)
  if lives then
    if queued then
      redis.call('ZREM', line, claim)
      -- include: admit { by = nil, mine = nil, asks = nil }
    end
    return 'granted ' .. record:sub(1, TOKEN_END) .. ' ' .. lives - now
  end
end

local granted = word == 'expiry' and 'succeeded ' or 'granted '
local leftBehind = false
if clock == NO_CLOCK then
  -- include: remains
  leftBehind = remains
end
if leftBehind then queued = LIFE_UNKNOWN end

local ticket = NO_TICKET
if mode == 'queue' and (queued or taken + wants > of + 0) then
  local ttl, headStart = claim:match(WAITING, TERMS_AT)
  -- include: clock
  ticket = headStart == '0' and tick or string.format('%.0f', clock - headStart)
  local joined = redis.call('ZADD', line, 'NX', ticket, claim) == 1
  -- include: enqueue { queue = line, fresh = redis.call('ZCOUNT', line, '-inf', '+inf') == 1 }
  -- include: linger
  if not joined then
    ticket = string.format('%.0f', redis.call('ZSCORE', line, claim))
    redis.call('ZADD', expiry, now + ttl, id)
    redis.call('PEXPIREAT', expiry, queued)
  end
  -- include: place
end

if queued then
  -- include: admit { by = nil, mine = id, asks = line }
  for i = 1, #admitted, 2 do
    if admitted[i] == claim then return granted .. admitted[i + 1] end
  end
  if unfinished then return 'unfinished' end
end
if not queued and taken + wants <= of + 0 then
  taken = taken + wants
  -- include: token { grants = {} }
  -- include: hold
  return granted .. token
end
if leftBehind and queued and mode ~= 'queue' then redis.call('HSET', lock, 'queued', queued) end

local place = NOT_QUEUED
if ticket ~= NO_TICKET then
  -- include: position
  place = position
end
-- include: first-end
if among and among ~= of then bytes = bytes .. '/' .. among end
return 'refused ' .. ttl .. ' ' .. place .. ' ' .. ticket .. ' ' .. since .. ' ' .. string.format('%.0f', math.max(clock, micros)) .. ' ' .. bytes .. ' ' .. names
