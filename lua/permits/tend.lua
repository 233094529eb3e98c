-- tend: the heartbeat of one client's waiters in one queue. It postpones each waiter's expiry. It also repairs every
-- loss of data or messages, so no waiter depends on a message. A waiter that is missing from the queue joins again with
-- its old ticket. The permits of lapsed holds go to the first waiters. If the message of a grant was lost, the reply
-- reports the grant.
--
-- Waiters of this call that are admitted here need no message, so a client that cannot receive messages still makes
-- progress. Other waiters of its client receive one, as in lua/mutex/tend.lua.
-- Waiters whose expiry has passed stay in the queue until lua/shared/admit.lua passes over them; only their deadlines
-- are removed here. If the first waiter keeps others waiting, this call asks whether it is dead (lua/shared/probe.lua).
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
--   ttl         ms      the waiters' own expiry
--   waiters...  claim, ticket for each of the client's waiters in one queue, 500 at most
-- Replies
--   tended      ttl ms, ms since a holder's grant, clock, followed by the pace of the lock (lua/permits/read-write/pacing.lua), bytes of that holder's owner "//" the permits taken "/" the holds, its owner and label; then for each waiter: its position (with groups, see lua/permits/semaphore/groups/position.lua), or {token with numbers, ttl ms, how} if it holds. The position is negative if the waiter may re-enter, because its owner holds
--   unfinished  the call has stopped at its limit; call again. If it has stopped while it admitted waiters, the waiters of this call are queued. If it has stopped while it ended lapsed holds, they are not
-- Invariants: I3 I4 I7
local client = waiters[1]:sub(1, CLIENT_END)
local id = client
-- include: permits
-- include: mode { call = waiters }

-- include: queues
-- include: line { claim = waiters[1] }
-- include: time
-- include: trim { from = WAITER }
-- include: lapse
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
    clock = math.max(clock, tonumber(ticket))
  end
end
if #joins > 0 then
  redis.call('ZADD', deadlines, (table.unpack or unpack)(times))
  -- include: rejoin
  -- include: enqueue { queue = line, fresh = true, tick = string.format('%.0f', clock) }
  -- include: linger
  redis.call('PEXPIREAT', deadlines, keep)
  -- include: place { id = client }
end
-- include: probe
-- include: admit { by = nil, mine = client, asks = line }
local ways, listed = {}, {}
for i = 1, #ids do
  listed[ids[i]] = true
end
for i = 1, #admitted, 2 do
  local claim = admitted[i]
  local waiter = claim:sub(1, ID_END)
  ways[claim] = word
  -- include: told { mine = client, asks = line }
  if told and not listed[waiter] then
    -- include: send { message = word .. ' ' .. waiter .. ' ' .. admitted[i + 1] .. ' ' .. lock }
  end
end
if unfinished then return { 'unfinished' } end
holds = holds + math.floor(#admitted / 2)
if #admitted > 0 then records = redis.call('HMGET', lock, (table.unpack or unpack)(ids)) end

-- include: pacing
local known = string.format('%.0f', math.max(clock, micros)) .. paced
-- include: first-end
local reply = { 'tended', ttl, since, known, bytes .. '//' .. string.format('%.0f', taken) .. '/' .. holds, names }
for i = 1, #waiters, 2 do
  local at = (i + 1) / 2
  if records[at] then
    local lives = tonumber(redis.call('ZSCORE', deadlines, ids[at]))
    -- include: numbered { record = records[at] }
    reply[#reply + 1] = { records[at]:sub(1, TOKEN_END) .. numbers, lives - now, ways[waiters[i]] or 'handoff' }
  else
    -- include: position { claim = waiters[i] }
    -- include: enters { claim = waiters[i] }
    reply[#reply + 1] = enters and -position or position
  end
end
return reply
