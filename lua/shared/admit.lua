-- admit: turns waiters of the fair queue into holders, while there is room for the next waiter (I3, I4). The rule of
-- the kind, `choose`, says which waiter is next.
--
-- All grants to one client go in one message, which is sent before the grants are written. If nobody receives that
-- message, the client is gone: its grants are not written, and the search for waiters continues. Waiters that need no
-- message are in one group, to which no message is sent.
--
-- If nobody is left whom others have to let pass, unfair waiters receive a message that there may be room.
--
-- Takes
--   word        string   the first word of the message
--   by?         string   the client that released, which ignores the message that there may be room; absent: no client ignores it
--   mine?       string   see lua/shared/told.lua
--   asks?       ZSET     see lua/shared/told.lua
--   lock        HASH     the lock
--   deadlines   ZSET     the ends of holds, and waiters' deadlines (lua/shared/live.lua)
--   queue?      ZSET     only of a semaphore with groups: its waiters without a group
--   waiting?    ZSET     only of a semaphore with groups: see lua/permits/semaphore/groups/queues.lua
--   turns?      ZSET     only of a semaphore with groups: see lua/permits/semaphore/groups/settle.lua
--   shares?     HASH     only of a semaphore with groups: see lua/permits/semaphore/groups/settle.lua
--   deaf        list     the clients that receive no message, each with the value `true`
--   lines       ZSETs   the queues of the fair waiters
--   now         ms       the server's time
--   micros      µs       the server's time
--   stamp       string   the server's time, µs as text
-- Changes
--   taken       number   includes what the admitted waiters want
--   grouped?    boolean  only of a semaphore with groups: see lua/permits/semaphore/groups/mode.lua
--   queued      ms       absent if the queue is empty afterwards
--   clock       µs       advances to the last token
--   keep        ms       grows if the lock's key has to live longer
-- Gives
--   admitted    list     claim, token with numbers (lua/permits/semaphore/number.lua) for each admitted waiter, grouped by client
--   heard       number   how many subscribers received the message that there may be room
--   unfinished  boolean  the limit of one call was reached; the next call has to continue
-- Constants
--   TOLD = ''  the name of the group of waiters that need no message; every other group has the name of a client
admitted, unfinished, heard = {}, false, 0
local left, again = MOST_ADMITTED, queued ~= nil
while again do
  again = false
  -- include: choose
  local groups, grants = {}, {}
  for i, claim in ipairs(chosen) do
    -- include: token
    local entry, answer
    -- include: number
    -- include: told
    local group = told and TOLD or claim:sub(1, CLIENT_END)
    local grant = grants[group]
    if not grant then
      grant = { claims = {}, ids = {}, tokens = {}, leases = {}, records = {}, answers = {} }
      grants[group] = grant
      groups[#groups + 1] = group
    end
    local at = #grant.claims + 1
    grant.claims[at], grant.ids[at], grant.tokens[at], grant.leases[at] = claim, claim:sub(1, ID_END), token, leases[i]
    grant.records[at], grant.answers[at] = token .. ' ' .. entry, answer
  end
  local fields, ends, last, brief = {}, {}, 0, nil
  for _, client in ipairs(groups) do
    local grant = grants[client]
    -- include: send { message = client ~= TOLD and word .. ' ' .. table.concat(grant.ids, ',') .. ' ' .. table.concat(grant.answers, ',') .. ' ' .. lock }
    if reached == 0 then
      deaf[client], again = true, true
      for i, claim in ipairs(grant.claims) do
        -- include: undo
        -- include: unnumber { record = grant.records[i] }
      end
    else
      for i, claim in ipairs(grant.claims) do
        local token, waiter, deadline = grant.tokens[i], grant.ids[i], now + grant.leases[i]
        fields[#fields + 1] = waiter
        fields[#fields + 1] = grant.records[i]
        ends[#ends + 1] = deadline
        ends[#ends + 1] = waiter
        last = math.max(last, deadline)
        brief = math.min(brief or deadline, deadline)
        admitted[#admitted + 1] = claim
        admitted[#admitted + 1] = grant.answers[i]
        -- include: own
      end
    end
  end
  if #fields > 0 then
    -- include: life { deadline = last }
    redis.call('HSET', lock, 'taken', taken, 'clock', string.format('%.0f', clock), 'keep', keep, (table.unpack or unpack)(fields))
    redis.call('ZADD', deadlines, (table.unpack or unpack)(ends))
    redis.call('PEXPIREAT', deadlines, keep)
    if life then redis.call('PEXPIREAT', lock, keep) end
    -- include: begin
    brief = brief - now
    if not nobody and brief * 3 < admitted[1]:match(WAITING, TERMS_AT) + 0 then
      for _, queue in ipairs(lines) do
        -- include: tell { lasts = brief }
      end
    end
  end
  unfinished = left == 0
  if nobody then
    redis.call('HDEL', lock, 'queued')
    queued, again = nil, false
    -- If not all waiters that were found have been admitted, or there were none, deadlines of dead ones may be left (I7).
    local dead = #admitted == 0 or #admitted < 2 * (MOST_ADMITTED - left)
    --[[cluster
    dead = true
    --]]
    if dead then redis.call('ZREMRANGEBYSCORE', deadlines, WAITER, '+inf') end
  elseif unfinished then
    again = false
  end
end
-- include: mark
if passable then
  heard = tonumber(redis.pcall('PUBLISH', lock .. ':unlock', by and 'free ' .. by or 'free')) or 0
end
