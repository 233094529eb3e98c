-- admit: makes waiters of a semaphore's fair queue holders, from the head on, for as long as the head fits (I3, I4).
--
-- Strictly first come, first served: a head that wants more than is free is waited for, and nobody passes it. Whether a claim
-- fits is judged by its own number, so that a deployment that raises it works while both numbers are in use.
--
-- A waiter is passed over, and so dropped, for the reasons of lua/shared/promote.lua; one that needs no message, not for being deaf. The grants to one client go in one
-- message. Its count decides whether they are: where nobody hears it, all of them are taken back before anything of them has
-- been written, and the next waiters have their turn.
--
-- Where nobody is left, the unfair waiters are told that permits may be free.
--
-- Takes
--   by?         string   the client that has released, and needs no telling; absent: all do
--   mine?       string   how ids begin that need no message: the reply of this script tells their client; absent: none does
--   lock        HASH     the lock
--   deadlines   ZSET     lua/shared/deadlines.lua
--   queue       ZSET     fair waiters by ticket
--   expiry      ZSET     waiters' deadlines
--   now         ms       the server's time
--   micros      µs       the same
--   stamp       string   the same
-- Changes
--   taken       number   with what they want
--   queued      ms       absent where nobody was left
--   clock       µs       up to the last token
--   keep        ms       the lock's key may live longer
-- Gives
--   admitted    list     claim, token, for each, in the order of the queue
--   heard       number   how many were told that permits may be free
--   unfinished  boolean  so many were looked at that the next call has to go on
-- Constants
--   MOST_ADMITTED = 250  waiters looked at, by one call
admitted, unfinished, heard = {}, false, 0
local left, deaf, again, undone = MOST_ADMITTED, {}, queued ~= nil, false
while again do
  again = false
  local clients, grants = {}, {}
  local first = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')
  local fits = true
  while first[1] and fits and left > 0 do
    local claim = first[1]
    local waiter, client = claim:sub(1, ID_END), claim:sub(1, CLIENT_END)
    local ttl, headStart = claim:match(WAITING, TERMS_AT)
    local told = mine and waiter:sub(1, #mine) == mine
    local missed = deaf[client] and not told
    local live = not missed and (first[2] + headStart) / 1000 + ttl >= now
    if not live and not missed then
      local deadline = redis.call('ZSCORE', expiry, waiter)
      live = deadline and tonumber(deadline) >= now
    end
    if live then
      local wants, of = claim:match(WANTS, TERMS_AT)
      fits = taken + wants <= of + 0
      if fits then
        taken = taken + wants
        -- include: clock
        if not grants[client] then
          grants[client] = { claims = {}, tokens = {}, ids = {}, told = {}, wants = 0 }
          clients[#clients + 1] = client
        end
        local grant = grants[client]
        local at = #grant.claims + 1
        grant.claims[at], grant.tokens[at], grant.wants = claim, tick, grant.wants + wants
        if not told then
          grant.ids[#grant.ids + 1], grant.told[#grant.told + 1] = waiter, tick
        end
      end
    end
    if fits then
      left = left - 1
      redis.call('ZREM', queue, claim)
      first = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')
    end
  end
  for _, client in ipairs(clients) do
    local grant = grants[client]
    local heard = 1
    if #grant.ids > 0 then
      local words = 'handoff ' .. table.concat(grant.ids, ',') .. ' ' .. table.concat(grant.told, ',')
      heard = redis.pcall('PUBLISH', INBOX .. client, words .. ' ' .. lock)
      --[[cluster
      if heard == 0 then
        local here = redis.pcall('CLUSTER', 'MYID')
        local noted = not here.err and redis.call('ZSCORE', expiry, client .. '@' .. here)
        if not noted or tonumber(noted) < now then heard = nil end
      end
      --]]
    end
    if heard == 0 then
      deaf[client], again, undone = true, true, true
      taken = taken - grant.wants
    else
      for i, claim in ipairs(grant.claims) do
        local token = grant.tokens[i]
        -- include: hold
        admitted[#admitted + 1] = claim
        admitted[#admitted + 1] = token
      end
    end
  end
  unfinished = left == 0
  if not first[1] then
    redis.call('HDEL', lock, 'queued')
    queued, again = nil, false
    --[[cluster
    redis.call('UNLINK', expiry)
    --]]
  elseif unfinished then
    again = false
  end
end
-- Who was written before has written the sum with what nobody heard of.
if undone then redis.call('HSET', lock, 'taken', taken) end
if not queued then
  heard = tonumber(redis.pcall('PUBLISH', lock .. ':unlock', by and 'free ' .. by or 'free')) or 0
end
