-- The holder of a mutex, its holds, and its successor.
--
-- The field `holder` is "<token> <from> <claim>". The holder's lease begins at `from` and is as long as its claim says. A
-- grant stores Redis's own text of the time as `from`, and the claim as it was received, so no number has to be formatted.
-- The state `s` of a mutex (lua/lock.lua) also has `holder`, and if there is one: its `token`, `writeHold`, the id of its first
-- hold, and `ends`, the end of its lease; of several leases, the latest end (ms). A holder whose lease has lapsed is still
-- there.
--
-- `holds` is set while the holder has re-entered. Then each of its holds has a lease of its own, whose end is in `deadlines`.
-- So when a process dies, its hold ends with the lease of that hold, even if other processes of the same owner re-enter in
-- the meantime (I4). `holder` has the claim of the first hold. If that one ends before the others, the lock is shown under
-- one of them. For this, `holds` lists the ids and labels of the re-entries, the oldest first:
--   "1<id> <label bytes> <label><id> <label bytes> <label>…"
-- A re-entry that has lapsed stays in the list. A client of an earlier version does not list its re-entries.
--
-- Tokens. A holder may issue some tokens on its own, after its own: its block. Only a release reports the last one. If a
-- holder ends without a release, the clock advances past its whole block. A grant does not advance it that far: else tickets,
-- which come from the clock, too, would no longer tell when waiters joined, and after a loss of data the tokens, which start
-- from the time of day again, could be smaller than before.
--
-- Constants
--   BLOCK = 1000        how many tokens after its own a holder may issue (src/kinds/mutex/mutex.ts)
--   FROM_AT = 18        the first character of `from`
--   FROM_END = 33       the last character of `from`
--   AFTER_FROM = 34     the space before the claim
--   HELD_ID_AT = 35     the first character of the claim, and so of the id
--   HELD_ID_END = 62    the last character of the id
--   HELD_TERMS_AT = 63  the first character of the claim after its id
--   NOT_LISTED = '1'            the value of `holds` if nothing is listed
--   LISTED_AT = 2               the first character of the list
--   LISTED = '^(%S+) (%d+) ()'  id; label bytes; where the label begins
--   MOST_LISTED = 4000          characters of `holds`. If it has more, the oldest re-entries are not listed any more
--   QUEUEING = '^ %d+( %S+ %d+ %d+ )'  what a claim has between owner bytes and names
--   MOST_PASSED_OVER = 250      waiters passed over by one call, at most
--   MOST_TOLD = 1000            holds whose clients one forced release notifies, at most

-- The state of a mutex. `fields`: holder, clock, queued, keep, holds, pace.
local function stateOf(lock, queue, deadlines, fields, stamp, micros, now)
  local holder, queued = fields[1], fields[3]
  local s = {
    lock = lock, queue = queue, deadlines = deadlines, holder = holder, token = false, hold = false, ends = false,
    clock = (fields[2] or 0) + 0, queued = queued and queued + 0, keep = (fields[4] or 0) + 0,
    holds = fields[5], pace = fields[6], stamp = stamp, micros = micros, now = now,
  }
  if holder then
    s.token, s.hold = holder:sub(1, TOKEN_END), holder:sub(HELD_ID_AT, HELD_ID_END)
    s.ends = math.floor(holder:sub(FROM_AT, FROM_END) / 1000) + holder:match(LEASE, HELD_TERMS_AT)
  end
  return s
end

-- Reads the state of a mutex.
local function readHolder(lock, queue, deadlines)
  local fields = redis.call('HMGET', lock, 'holder', 'clock', 'queued', 'keep', 'holds', 'pace')
  return stateOf(lock, queue, deadlines, fields, readTime())
end

-- The end of one hold's own lease; nil or false: the holder has no such hold.
local function endOf(s, id)
  if not s.holds then return s.hold == id and s.ends end
  local ends = tonumber(redis.call('ZSCORE', s.deadlines, id) or nil)
  return ends and ends < WAITER and ends
end

-- The owner bytes, and the owner and label, of a holder. The owner of a retained hold does not re-enter it, so its waiters
-- need not try.
local function namesOf(holder)
  local bytes, names = holder:match(NAMES, HELD_TERMS_AT)
  if holder:sub(HELD_ID_AT, HELD_ID_AT) == KEPT then return '0', names:sub(bytes + 1) end
  return bytes, names
end

-- Changes `holder` so that its lease, whose length stays the same, ends at a deadline, earlier or later than before.
local function prolong(s, deadline)
  local lease = s.holder:match(LEASE, HELD_TERMS_AT)
  s.holder = s.token .. ' ' .. string.format('%.0f', (deadline - lease) * 1000) .. s.holder:sub(AFTER_FROM)
end

-- Takes a hold out of the list of the holder's re-entries.
local function unlist(s, id)
  local holds, at = s.holds, LISTED_AT
  repeat
    local each, size, from = holds:match(LISTED, at)
    local behind = each and from + size
    if each == id then s.holds = holds:sub(1, at - 1) .. holds:sub(behind) end
    at = behind
  until not each or each == id
end

-- Ends all holds of a holder that has re-entered. The deadlines of waiters stay if anybody is queued, and live no longer
-- than the queue (I7). It comes after `promote`: if a cluster moves the slot, Redis looks for a ZSET that the script has
-- emptied on the other node, and refuses to read it again.
local function forgetHolds(s)
  if not s.queued then
    redis.call('UNLINK', s.deadlines)
  else
    if s.queued > s.now then redis.call('PEXPIREAT', s.deadlines, s.queued) end
    redis.call('ZREMRANGEBYSCORE', s.deadlines, '-inf', '(' .. WAITER)
  end
  redis.call('HDEL', s.lock, 'holds')
  s.holds = nil
end

-- Tells waiters when a lease ends, because it ends before their next heartbeat. They do not know this lease: it began after
-- the last answer that they have received, or the holder's later leases were released. So they look again when it has
-- ended, and the lock does not stay without a holder until a heartbeat (I4). Unfair waiters hear it on the unlock channel.
-- Of the fair ones, only the first needs it. If it is dead too, the next heartbeat of another waiter grants the lock.
local function tellEnd(s, lasts)
  redis.pcall('PUBLISH', s.lock .. ':unlock', 'ends ' .. lasts)
  local claim = redis.pcall('ZRANGE', s.queue, 0, 0)[1]
  if claim then redis.pcall('PUBLISH', INBOX .. claim:sub(1, CLIENT_END), 'ends ' .. lasts .. ' ' .. s.lock) end
end

-- Makes the claim the holder, with a lease that begins now. The previous holder must have been ended before. An owner with a
-- name may also wait in other calls; their waiters learn of the grant from the message 'entered', and re-enter.
local function makeHolder(s, claim, lease, token, sampled)
  s.token, s.hold, s.ends = token, claim:sub(1, ID_END), s.now + lease
  s.holder = token .. ' ' .. s.stamp .. ' ' .. claim
  local life = keepUntil(s, s.ends)
  if life then
    redis.call('HSET', s.lock, 'holder', s.holder, 'clock', token, 'keep', life)
    redis.call('PEXPIREAT', s.lock, life)
    if sampled then redis.call('HSET', s.lock, 'pace', sampled) end
  elseif sampled then
    redis.call('HSET', s.lock, 'holder', s.holder, 'clock', token, 'pace', sampled)
  else
    redis.call('HSET', s.lock, 'holder', s.holder, 'clock', token)
  end
  if claim:sub(TERMS_AT, NAMELESS_END) ~= NAMELESS then
    local size, rest = claim:match(NAMES, TERMS_AT)
    redis.pcall('PUBLISH', s.lock .. ':unlock', 'entered ' .. rest:sub(1, size))
  end
end

-- Makes the first live waiter of the fair queue the holder (I3, I4), and sends a message to its inbox: `reason`, its id, its
-- token. Waiters whose ids begin with `mine` need no message, because the reply of this script reaches their client.
-- Returns the id of the new holder, if there is one, and whether the search is unfinished, because one call passes over only
-- so many waiters, so that it does not block the server. Then the lock has no holder, and any call that asks for it has to
-- continue the search first.
--
-- A waiter is passed over, and so removed from the queue, in two cases:
--   * Its expiry has passed: it joined longer ago than its waiterTtl, and no heartbeat has recorded a later deadline.
--   * PUBLISH reports that nobody is subscribed to its inbox (`send`): its process is dead or disconnected. If the process
--     lives after all, the waiter joins again with its old ticket. So each waiter of a crashed process costs one ZPOPMIN, and
--     no time-out, and such waiters in a row cost one message together.
--
-- In a cluster, this call may pop the last entry of the queue while the slot is moving away. At the next pop, Redis then
-- looks for the queue on the other node, and refuses the command. That refusal means that the queue is empty. It must not
-- end the script, which has already written something.
--
-- PUBLISH comes after the end of the old hold and before the write of the new one, because the number of subscribers decides
-- whether the waiter becomes the holder. ZPOPMIN is the first write and frees memory, so a server at maxmemory accepts the
-- writes after it. If an ACL refuses PUBLISH, the waiter still becomes the holder; its next heartbeat finds the grant.
local function promote(s, reason, mine, sampled)
  local left, deaf = MOST_PASSED_OVER, nil
  --[[cluster
  local popped
  --]]
  repeat
    left = left - 1
    local first
    --[[cluster
    first, popped = popped and redis.pcall('ZPOPMIN', s.queue), true
    --]]
    first = first or redis.call('ZPOPMIN', s.queue)
    local claim = first[1]
    if not claim then
      redis.call('HDEL', s.lock, 'queued')
      s.queued = nil
      --[[cluster
      redis.call('ZREMRANGEBYSCORE', s.deadlines, WAITER, '+inf')
      --]]
      return nil, false
    end
    local client, lease, ttl = claim:sub(1, CLIENT_END), nil, nil
    local told = mine and claim:sub(1, #mine) == mine
    if told or client ~= deaf then lease, ttl = wantsStill(s, claim, first[2]) end
    if lease then
      local token = s.stamp
      if s.clock < s.micros then
        s.clock = s.micros
      else
        s.clock = s.clock + 1
        token = string.format('%.0f', s.clock)
      end
      local reached = not told and send(s, client, reason .. ' ' .. claim:sub(1, ID_END) .. ' ' .. token .. ' ' .. s.lock)
      if reached ~= 0 then
        makeHolder(s, claim, lease, token, sampled)
        if lease * 3 < ttl + 0 then
          -- functions
          tellEnd(s, lease)
        end
        return s.hold, false
      end
      deaf = client
    end
  until left == 0
  return nil, true
end

-- Ends the holder. The lock is handed off to the next fair waiter. If there is none, the lock becomes free, and unfair
-- waiters are woken. Returns what `promote` returns.
local function openLock(s, mine, sampled)
  local successor, unfinished
  if s.queued then
    -- functions
    successor, unfinished = promote(s, 'handoff', mine, sampled)
  end
  if s.holds then
    -- functions
    forgetHolds(s)
  end
  if not successor then
    redis.call('HDEL', s.lock, 'holder')
    if not unfinished then redis.pcall('PUBLISH', s.lock .. ':unlock', mine and 'free ' .. mine or 'free') end
  end
  return successor, unfinished
end

-- Keeps the mutex taken after the release of its last hold, until the `minHold` of the call has passed. The hold is over for
-- its caller. So its id changes: its first character becomes KEPT. A repeated release, a renewal and a re-entry find no hold
-- with their id, and only the end of the lease, or a forced release, ends this one. The character is kept in the claim, for
-- `inspect`. PEXPIREAT comes first because a server at maxmemory refuses a script whose first write is HSET.
local function retain(s, till, sampled)
  prolong(s, till)
  local first = s.hold:sub(1, 1)
  s.ends, s.hold = till, KEPT .. s.hold:sub(2)
  local terms = s.holder:sub(HELD_TERMS_AT):gsub(MIN_HOLD_TERM, '%0,' .. first, 1)
  s.holder = s.holder:sub(1, AFTER_FROM) .. s.hold .. terms
  keepUntil(s, till)
  redis.call('PEXPIREAT', s.lock, s.keep)
  if s.holds then forgetHolds(s) end
  redis.call('HSET', s.lock, 'holder', s.holder, 'clock', string.format('%.0f', s.clock), 'keep', s.keep)
  if sampled then redis.call('HSET', s.lock, 'pace', sampled) end
  if till < s.now + s.holder:match(WAITING, HELD_TERMS_AT) then tellEnd(s, till - s.now) end
end

-- Ends one hold. If it is the holder's last live hold, the holder ends with it. `used`: the last token that its client has
-- issued on its own. `minHold`: the claim may have a `minHold`. Returns whether the hold existed, what `openLock` returns, and
-- whether the lock is retained.
--
-- ZREM, UNLINK and HDEL come first, because a server at maxmemory refuses a script whose first write is HSET. ZREM is not
-- used for the last of several holds, which `forgetHolds` removes with the ZSET. If ZREM had emptied it before, and a cluster
-- moves the slot, Redis would look for it on the other node. The script would fail, and the lock would keep a holder that no
-- call can end.
local function drop(s, id, used, mine, minHold)
  if s.holds then
    -- functions
    if (redis.call('ZSCORE', s.deadlines, id) or WAITER) + 0 >= WAITER then return false end
    local many = redis.call('ZCOUNT', s.deadlines, '-inf', '(' .. WAITER)
    local last = redis.call('ZRANGE', s.deadlines, math.max(0, many - 2), many - 1, 'WITHSCORES')
    local latest = tonumber(last[last[#last - 1] == id and #last - 2 or #last] or nil)
    if latest and latest >= s.now then
      redis.call('ZREM', s.deadlines, id)
      unlist(s, id)
      prolong(s, latest)
      redis.call('HSET', s.lock, 'holder', s.holder, 'holds', s.holds)
      if latest < s.now + s.holder:match(WAITING, HELD_TERMS_AT) then tellEnd(s, latest - s.now) end
      return true
    end
  elseif s.hold ~= id then
    return false
  end
  if used and s.clock < used + 0 then s.clock = used + 0 end
  local till
  if minHold or s.holds then
    -- A re-entry, too, may be the last hold of a grant with a `minHold`. If the lock's clock was ahead of the time, the token
    -- is later than the grant.
    local least = s.holder:match(MIN_HOLD, HELD_TERMS_AT)
    till = least and math.min(math.floor(s.token / 1000), s.now) + least
  end
  local retained = till and till > s.now
  local sampled = s.queued and sample(s, (retained and till * 1000 or s.micros) - s.token)
  if retained then
    -- functions
    retain(s, till, sampled)
    return true, nil, nil, true
  end
  local successor, unfinished = openLock(s, mine, sampled)
  if used and not successor then redis.call('HSET', s.lock, 'clock', string.format('%.0f', s.clock)) end
  return true, successor, unfinished
end

-- Shows the holder of a lock that was re-entered under a hold that lives. If its first hold has ended, that is its oldest
-- re-entry, if it is listed: `holder` then has the id and the label of that hold. If its caller gave no name, it also has its
-- owner, which is the id of the first hold.
local function show(s)
  local id, label, at = s.hold, nil, LISTED_AT
  repeat
    local ends = (redis.call('ZSCORE', s.deadlines, id) or 0) + 0
    local ended, size, from = ends < s.now or ends >= WAITER, nil, nil
    if ended then
      id, size, from = s.holds:match(LISTED, at)
      at = id and from + size
      label = id and s.holds:sub(from, at - 1)
    end
  until not ended or not id
  if label then
    local bytes, names = s.holder:match(NAMES, HELD_TERMS_AT)
    local owner = bytes == '0' and s.hold or names:sub(1, bytes)
    local queueing = s.holder:match(QUEUEING, HELD_TERMS_AT)
    s.holder = s.holder:sub(1, AFTER_FROM) .. id .. ' ' .. #owner .. queueing .. owner .. label
  end
end

-- Sets the holder's token to the floor, on which the client and the other servers of a quorum have agreed. If nothing has to
-- change, nothing is written (I5). The floor is a time in µs, as text, and may come from a server whose clock is ahead. So
-- the lock's key lives at least until that time (I2).
local function agree(s, floor)
  if s.token ~= floor then
    s.token, s.holder = floor, floor .. s.holder:sub(TOKEN_END + 1)
    redis.call('HSET', s.lock, 'holder', s.holder)
  end
  if s.clock < floor + 0 then
    s.clock = floor + 0
    local life = keepUntil(s, s.ends)
    redis.call('HSET', s.lock, 'clock', floor, 'keep', s.keep)
    if life then redis.call('PEXPIREAT', s.lock, life) end
  end
end
