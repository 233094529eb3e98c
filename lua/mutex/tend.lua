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
--   deadlines?  ZSET    see lua/shared/live.lua
-- ARGV
--   ttl         ms      the waiters' own expiry
--   waiters...  claim, ticket for each of the client's waiters, 500 at most
-- Replies
--   tended      ttl ms, ms since the holder's grant, clock (a lower bound for the tokens of later grants), followed by the pace of the lock (lua/shared/paced.lua), bytes of the holder's owner, its owner and label; then for each waiter: its position, or {token, ttl ms, how} if it holds the lock
--   unfinished  the waiters are queued, but one call may pass over only so many dead waiters; call again
-- Invariants: I3 I4 I7
-- include: state
-- include: keys { given = deadlines }
-- include: holder
-- include: ends
-- include: time

-- include: trim { from = WAITER }

local joins, times, heldUntil = {}, {}, {}
for i = 1, #waiters, 2 do
  local claim, ticket = waiters[i], waiters[i + 1]
  local id = claim:sub(1, ID_END)
  -- include: live
  if lives and lives >= now then
    heldUntil[i] = lives
  else
    joins[#joins + 1] = ticket
    joins[#joins + 1] = claim
    times[#times + 1] = WAITER + now + ttl
    times[#times + 1] = id
    clock = math.max(clock, tonumber(ticket))
  end
end
if #joins > 0 then
  redis.call('ZADD', queue, (table.unpack or unpack)(joins))
  redis.call('ZADD', deadlines, (table.unpack or unpack)(times))
  -- include: enqueue { fresh = true, tick = string.format('%.0f', clock) }
  local till = holds and math.max(ends, queued) + LINGER or queued
  redis.call('PEXPIREAT', deadlines, till)
  -- include: place { id = waiters[1], keep = till }
end

local client, how, granted = waiters[1]:sub(1, CLIENT_END), 'handoff', nil
if queued and not (holder and ends >= now) then
  how = holder and 'expiry' or 'handoff'
  if holder then
    -- include: unreported
  end
  -- include: promote { reason = how, mine = client, sampled = nil }
  if unfinished then return { 'unfinished' } end
  -- include: forget
  granted = successor
end

local since, known = math.max(0, now - math.floor(token / 1000)), string.format('%.0f', math.max(clock, micros))
-- include: shown
-- include: claim
-- include: paced
known = known .. paced
local reply = { 'tended', ends - now, since, known, tonumber(bytes), names }
for i = 1, #waiters, 2 do
  local id = waiters[i]:sub(1, ID_END)
  if heldUntil[i] then
    reply[#reply + 1] = { token, heldUntil[i] - now, hold == id and how or 'reentry' }
  elseif granted == id then
    reply[#reply + 1] = { token, ends - now, how }
    granted = nil
  else
    reply[#reply + 1] = redis.call('ZRANK', queue, waiters[i]) + 1
  end
end
if granted and granted:sub(1, CLIENT_END) == client then
  -- include: send { message = how .. ' ' .. granted .. ' ' .. token .. ' ' .. lock }
end
return reply
