-- tend: the heartbeat of one client's waiters of one lock. It postpones each waiter's expiry. It also repairs every
-- loss of data or messages, so no waiter depends on a message. If a waiter is missing from the queue, because the queue
-- was lost or the waiter was passed over as unreachable, the waiter joins again with its old ticket. If the lock is
-- free or its lease has lapsed, the first live waiter is granted it. If the message of a grant was lost, the reply
-- reports the grant.
--
-- This call may grant the lock to a waiter of this client. Such a waiter needs no message, because the reply reports
-- the grant. So a client that cannot receive messages still makes progress. A waiter of this client that is not in the
-- call receives a message: it may have joined a moment ago, or it is left over in the queue although its wait has ended,
-- as after a failover. The reply names the holder's owner, so that the client sees when one of its waiters may re-enter.
-- The client sends a ticket for each waiter, which replaces the waiter's ticket in the queue. The two tickets differ in
-- two cases. If the waiter was passed over, it may have joined again by `acquire`, with a later ticket than before. If
-- several servers keep the lock, each has issued a ticket of its own, and the client sends the largest ticket of a
-- majority to all of them.
-- Waiters whose expiry has passed stay in the queue until `promote` passes over them; only their deadlines are removed
-- here.
--
-- KEYS
--   lock        HASH    the lock
--   queue?      ZSET    fair waiters by ticket
--   deadlines?  ZSET    the ends of re-entered holds, and waiters' deadlines (lua/holder.lua)
-- ARGV
--   ttl         ms      the waiters' own expiry
--   waiters...  claim, ticket for each of the client's waiters, 500 at most
-- Replies
--   tended      ttl ms, ms since the holder's grant, clock (a lower bound for the tokens of later grants), followed by the pace of the lock, bytes of the holder's owner, its owner and label; then for each waiter: its position, or {token, ttl ms, how} if it holds the lock
--   unfinished  the waiters are queued, but one call may pass over only so many dead waiters; call again
-- Invariants: I3 I4 I7

-- functions
local s = readHolder(lock, queue, deadlines)
--[[cluster
if not deadlines then return redis.error_reply('ERR non local key') end
--]]
trim(s, WAITER)

local now = s.now
local joins, times, heldUntil = {}, {}, {}
for i = 1, #waiters, 2 do
  local claim, ticket = waiters[i], waiters[i + 1]
  local id = claim:sub(1, ID_END)
  local ends = endOf(s, id)
  if ends and ends >= now then
    heldUntil[i] = ends
  else
    joins[#joins + 1] = ticket
    joins[#joins + 1] = claim
    times[#times + 1] = WAITER + now + ttl
    times[#times + 1] = id
    s.clock = math.max(s.clock, ticket + 0)
  end
end
if #joins > 0 then
  redis.call('ZADD', queue, (table.unpack or unpack)(joins))
  redis.call('ZADD', deadlines, (table.unpack or unpack)(times))
  enqueue(s, queue, ttl, string.format('%.0f', s.clock), true)
  local till = s.holds and math.max(s.ends, s.queued) + LINGER or s.queued
  redis.call('PEXPIREAT', deadlines, till)
  --[[cluster
  notePlace(s, waiters[1], ttl, till)
  --]]
end

local client, how, granted = waiters[1]:sub(1, CLIENT_END), 'handoff', nil
if s.queued and not (s.holder and s.ends >= now) then
  -- functions
  how = s.holder and 'expiry' or 'handoff'
  if s.holder then s.clock = math.max(s.clock, s.token + BLOCK) end
  local successor, unfinished = promote(s, how, client, nil)
  if unfinished then return { 'unfinished' } end
  if s.holds then forgetHolds(s) end
  granted = successor
end

local known = string.format('%.0f', math.max(s.clock, s.micros))
if s.pace then known = known .. '~' .. s.pace end
if s.holds then
  -- functions
  show(s)
end
local bytes, names = namesOf(s.holder)
local reply = { 'tended', s.ends - now, math.max(0, now - math.floor(s.token / 1000)), known, tonumber(bytes), names }
for i = 1, #waiters, 2 do
  local id = waiters[i]:sub(1, ID_END)
  if heldUntil[i] then
    reply[#reply + 1] = { s.token, heldUntil[i] - now, s.hold == id and how or 'reentry' }
  elseif granted == id then
    reply[#reply + 1] = { s.token, s.ends - now, how }
    granted = nil
  else
    reply[#reply + 1] = redis.call('ZRANK', queue, waiters[i]) + 1
  end
end
if granted and granted:sub(1, CLIENT_END) == client then
  -- functions
  send(s, client, how .. ' ' .. granted .. ' ' .. s.token .. ' ' .. lock)
end
return reply
