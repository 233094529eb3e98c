-- tend: the heartbeat of one client's waiters in one queue. It postpones each waiter's expiry. It also repairs every
-- loss of data or messages, so no waiter depends on a message. A waiter that is missing from the queue joins again with
-- its old ticket. The permits of lapsed holds go to the first waiters. If the message of a grant was lost, the reply
-- reports the grant.
--
-- Waiters of this call that are admitted here need no message, so a client that cannot receive messages still makes
-- progress. Other waiters of its client receive one, as in lua/mutex/tend.lua.
-- Waiters whose expiry has passed stay in the queue until `admit` passes over them; only their deadlines
-- are removed here. If the first waiter keeps others waiting, this call asks whether it is dead (`probe`).
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
--   ttl         ms      the waiters' own expiry
--   waiters...  claim, ticket for each of the client's waiters in one queue, 500 at most
-- Replies
--   tended      ttl ms, ms since a holder's grant, clock, followed by the pace of the lock (`paceOf`), bytes of that holder's owner "//" the permits taken "/" the holds, its owner and label; then for each waiter: its position (with groups, see `placeInGroup`), or {token with numbers, ttl ms, how} if it holds. The position is negative if the waiter may re-enter, because its owner holds
--   unfinished  the call has stopped at its limit; call again. If it has stopped while it admitted waiters, the waiters of this call are queued. If it has stopped while it ended lapsed holds, they are not
-- Invariants: I3 I4 I7

--[[cluster
if not none then return redis.error_reply('ERR non local key') end
--]]
-- functions
local s, mark = readPermits(lock, queue, deadlines, readers)
local client, now = waiters[1]:sub(1, CLIENT_END), s.now
local grouped = mark and not s.queued
for i = 1, turns and #waiters or 0, 2 do
  grouped = grouped or waiters[i]:find(GROUPED, TERMS_AT)
end
if turns and grouped then
  -- functions
  withGroups(s, waiting, turns, shares, mark)
end
local line = lineOf(s, waiters[1])
trim(s, WAITER)
local more, word, holds = lapse(s, mark)
if more then return { 'unfinished' } end

local joins, times, ids = {}, {}, {}
for i = 1, #waiters, 2 do
  ids[#ids + 1] = waiters[i]:sub(1, ID_END)
end
local records = redis.call('HMGET', lock, (table.unpack or unpack)(ids))
for i = 1, #waiters, 2 do
  local claim, ticket = waiters[i], waiters[i + 1]
  if not records[(i + 1) / 2] then
    joins[#joins + 1] = ticket
    joins[#joins + 1] = claim
    times[#times + 1] = WAITER + now + ttl
    times[#times + 1] = claim:sub(1, ID_END)
    s.clock = math.max(s.clock, ticket + 0)
  end
end
if #joins > 0 then
  redis.call('ZADD', deadlines, (table.unpack or unpack)(times))
  if s.turns then
    -- functions
    rejoinGroups(s, joins)
  else
    redis.call('ZADD', line, 'NX', (table.unpack or unpack)(joins))
  end
  enqueue(s, line, ttl, string.format('%.0f', s.clock), true)
  linger(s, line)
  redis.call('PEXPIREAT', deadlines, s.keep)
  --[[cluster
  notePlace(s, client, ttl, s.keep)
  --]]
end
local admitted, unfinished = admit(s, word, nil, client, line, probe(s, client, ttl))
local ways, listed = {}, {}
for i = 1, #ids do
  listed[ids[i]] = true
end
for i = 1, #admitted, 2 do
  local claim = admitted[i]
  local waiter = claim:sub(1, ID_END)
  ways[claim] = word
  if isTold(s, claim, client, line) and not listed[waiter] then
    send(s, client, word .. ' ' .. waiter .. ' ' .. admitted[i + 1] .. ' ' .. lock)
  end
end
if unfinished then return { 'unfinished' } end
holds = holds + math.floor(#admitted / 2)
if #admitted > 0 then records = redis.call('HMGET', lock, (table.unpack or unpack)(ids)) end

local known = string.format('%.0f', math.max(s.clock, s.micros)) .. paceOf(s)
local left, since, bytes, names = firstEnd(s)
local reply = { 'tended', left, since, known, bytes .. '//' .. exactly(s.taken) .. '/' .. holds, names }
for i = 1, #waiters, 2 do
  local claim, at = waiters[i], (i + 1) / 2
  if records[at] then
    local lives = tonumber(redis.call('ZSCORE', deadlines, ids[at]))
    reply[#reply + 1] = { records[at]:sub(1, TOKEN_END) .. numbersOf(records[at]), lives - now, ways[claim] or 'handoff' }
  else
    local place = placeOf(s, claim)
    if readers then
      -- functions
      if mayReEnter(s, claim) then place = -place end
    end
    reply[#reply + 1] = place
  end
end
return reply
