-- The holds of a semaphore or a read-write lock, and how waiters become holders.
--
-- A holder is a field of the lock's own hash, named by its id, with the value "<token> <claim>". The permits of all holders,
-- `taken`, are in the same hash. So no permits stay taken if the records of their holders are lost. The hold's deadline is in
-- a ZSET, which finds lapsed holds without a walk over all holds. A claim has two more numbers than a mutex's, after
-- `headStart`: the permits that it wants, and the permits that the lock has (src/kinds/claim.ts).
--
-- The state `s` (lua/lock.lua) also has `taken`, and `otherLine`, the second queue, if there is one. What the kinds do differently stands in branches: a
-- read-write lock has `s.readers` (lua/read-write.lua), and a semaphore with groups has `s.turns` (lua/groups.lua). What every
-- script with groups needs is in `s.groups`, so that its text has these functions once.
--
-- Constants
--   CLAIM_AT = 18                                   the first character of the claim in a record
--   RECORD_TERMS_AT = 46                            the first character after the claim's id in a record
--   RECORD_NAMELESS_END = 48                        the last of the characters that show whether the owner has a name (NAMELESS)
--   WANTS = '^ %d+ %S+ %d+ %d+ (%d+)/(%d+)(%S*)'    permits wanted; permits of the lock; what else the call asks for
--   TERMS = '^ %d+ (%d+)%S* (%d+) (%d+) (%d+)/(%d+)(%S*)'  lease, waiterTtl, headStart, and the same
--   NAMES_BEHIND = '^ (%d+) %S+ %d+ %d+ %d+/%S+ (.*)$'  owner bytes; owner and label
--   NUMBER_AND_NAMES = '^ (%d+) %S+ %d+ %d+ %d+/(%d+)%S* (.*)$'  owner bytes; permits of the lock; owner and label
--   MOST_ADMITTED = 250     waiters that one call looks at, at most
--   MOST_LAPSED = 250       holds ended by one call, at most
--   MOST_FORCED = 250       holds ended by one forced release, at most
--   MANY = 100000000000000  permits; Lua prints a number with more digits only inexactly
--   NEVER_FULL = -1000000000  fewer waiters than any limit
--   TOLD = ''               the name of the group of grants that need no message; every other group has the name of a client

-- The state of a lock. `fields`: taken, clock, queued, keep, pace.
local function permitsOf(lock, queue, deadlines, readers, fields, stamp, micros, now)
  local queued = fields[3]
  return {
    lock = lock, queue = queue, deadlines = deadlines, readers = readers, otherLine = readers,
    taken = (fields[1] or 0) + 0, clock = (fields[2] or 0) + 0, queued = queued and tonumber(queued),
    keep = (fields[4] or 0) + 0, pace = fields[5], stamp = stamp, micros = micros, now = now,
  }
end

-- Reads the state of a lock. Also returns the text of `queued`, which says whether a semaphore has groups.
local function readPermits(lock, queue, deadlines, readers)
  local fields = redis.call('HMGET', lock, 'taken', 'clock', 'queued', 'keep', 'pace')
  return permitsOf(lock, queue, deadlines, readers, fields, readTime()), fields[3]
end

-- The queue of a claim.
local function lineOf(s, claim)
  if s.readers then return claim:match(WANTS, TERMS_AT) == '1' and s.readers or s.queue end
  return s.waiting and claim:find(GROUPED, TERMS_AT) and s.waiting or s.queue
end

-- Whether a waiter needs no message, because the reply of this script reports its grant: to waiters of the calling client,
-- whose ids begin with `mine`; of a read-write lock, only if they are in the queue `asks`.
local function isTold(s, claim, mine, asks)
  return mine and claim:sub(1, #mine) == mine and (not s.readers or lineOf(s, claim) == asks)
end

-- Tells waiters when a lease ends, because it ends before their next heartbeat (`tellEnd`, lua/holder.lua). Of the fair
-- ones, only the first of each queue needs it; with groups, the one whose turn is next.
local function tellEnds(s, lasts)
  redis.pcall('PUBLISH', s.lock .. ':unlock', 'ends ' .. lasts)
  if s.turns then
    local head = s.groups.next(s)
    local client = head and head:sub(TOKEN_END + 1, TOKEN_END + CLIENT_END)
    if client then redis.pcall('PUBLISH', INBOX .. client, 'ends ' .. lasts .. ' ' .. s.lock) end
    return
  end
  for _, line in ipairs({ s.queue, s.otherLine }) do
    local claim = redis.pcall('ZRANGE', line, 0, 0)[1]
    if claim then redis.pcall('PUBLISH', INBOX .. claim:sub(1, CLIENT_END), 'ends ' .. lasts .. ' ' .. s.lock) end
  end
end

-- The token of a new hold, and the clock as text. `granted`: the tokens of the owners that this call has admitted.
local function nextToken(s, claim, granted)
  local ticket = tick(s)
  if s.readers and claim:sub(TERMS_AT, NAMELESS_END) ~= NAMELESS then
    -- functions
    return tokenOf(s, claim, granted, ticket), ticket
  end
  return ticket, ticket
end

-- Writes a new hold, whose lease begins now, and whose permits `taken` already includes. The key of the deadlines is new if
-- there is no other holder. So each new hold sets the key's life (I7). Returns the token for the client, the lease, and
-- whether the lease ends before the next heartbeat of waiters.
local function writeHold(s, claim, token, clock)
  local entry, answer = giveNumbers(s, claim, token)
  local lease, ttl = claim:match(LEASE_AND_WAITING, TERMS_AT)
  local id, ends = claim:sub(1, ID_END), s.now + lease
  local life = keepUntil(s, ends)
  redis.call('HSET', s.lock, id, token .. ' ' .. entry, 'taken', s.taken, 'clock', clock, 'keep', s.keep)
  redis.call('ZADD', s.deadlines, ends, id)
  redis.call('PEXPIREAT', s.deadlines, s.keep)
  if life then redis.call('PEXPIREAT', s.lock, s.keep) end
  if s.readers and claim:sub(TERMS_AT, NAMELESS_END) ~= NAMELESS then
    -- functions
    noteOwner(s, claim, token)
  end
  return answer, lease, lease * 3 < ttl + 0
end

-- What ends with a hold besides its record.
local function settleEnded(s, record)
  if s.readers then
    -- functions
    forgetOwner(s, record)
  elseif s.turns then
    -- functions
    hasRoomAgain(s, record)
  end
  freeNumbers(s, record)
end

-- Ends one hold. If there is neither a hold nor a waiter left, no deadline is: those that remain are of dead waiters (I7).
-- ZREM, UNLINK and HDEL come first, because a server at maxmemory refuses a script whose first write is HSET.
local function giveUp(s, id, record, sampled)
  local wants, _, more = record:match(WANTS, RECORD_TERMS_AT)
  s.taken = s.taken - wants
  if s.taken == 0 and not s.queued then
    redis.call('UNLINK', s.deadlines)
  else
    redis.call('ZREM', s.deadlines, id)
  end
  redis.call('HDEL', s.lock, id)
  if sampled then
    redis.call('HSET', s.lock, 'taken', s.taken, 'pace', sampled)
  else
    redis.call('HSET', s.lock, 'taken', s.taken)
  end
  if more ~= '' or s.turns or s.readers and record:sub(RECORD_TERMS_AT, RECORD_NAMELESS_END) ~= NAMELESS then
    -- functions
    settleEnded(s, record)
  end
end

-- Ends the holds whose leases have lapsed (I1), oldest deadline first. Returns whether one call has ended as many as it may,
-- the first word of the messages to waiters admitted now, and how many holds are left.
--
-- If the deadlines were lost, the ends of the leases are unknown. Then all holds end, as they do if the lock's own key is
-- lost (I8). If the lock's own key was lost, the deadlines that remain belong to no hold, and are removed. `mark`: the text
-- of `queued`.
local function lapse(s, mark)
  if s.clock == NO_CLOCK and redis.call('ZCOUNT', s.deadlines, '-inf', '(' .. WAITER) > 0 then
    redis.call('ZREMRANGEBYSCORE', s.deadlines, '-inf', '(' .. WAITER)
  end
  if s.taken == 0 then return false, 'handoff', 0 end
  local many = redis.call('ZCOUNT', s.deadlines, '-inf', '(' .. s.now)
  local holds = redis.call('ZCOUNT', s.deadlines, '-inf', '(' .. WAITER)
  if many > 0 then
    -- functions
    local over = redis.call('ZRANGE', s.deadlines, 0, math.min(many, MOST_LAPSED) - 1)
    local records = redis.call('HMGET', s.lock, (table.unpack or unpack)(over))
    for i = 1, #over do
      if records[i] then
        s.taken = s.taken - records[i]:match(WANTS, RECORD_TERMS_AT)
        settleEnded(s, records[i])
      end
    end
    -- As in `giveUp`.
    if s.taken == 0 and not s.queued then
      redis.call('UNLINK', s.deadlines)
    else
      redis.call('ZREM', s.deadlines, (table.unpack or unpack)(over))
    end
    redis.call('HDEL', s.lock, (table.unpack or unpack)(over))
    redis.call('HSET', s.lock, 'taken', s.taken)
    return many > MOST_LAPSED, 'expiry', holds - #over
  elseif holds == 0 then
    s.taken = 0
    redis.call('UNLINK', s.lock)
    redis.call('HSET', s.lock, 'clock', string.format('%.0f', s.clock), 'keep', s.keep)
    if mark or s.queued then redis.call('HSET', s.lock, 'queued', mark or s.queued) end
    redis.call('PEXPIREAT', s.lock, s.keep)
  end
  return false, 'handoff', holds
end

-- Selects the waiters to admit to a semaphore: from the head of the queue, until the next one does not fit. Strictly first
-- come, first served: if the head wants more than is free, no other waiter passes it. A claim says how many permits the
-- semaphore has, and this number decides whether the claim fits. So while a deployment raises the number, clients with the
-- old and the new number work side by side. Returns the claims, which have been removed from the queue, their leases, how
-- many more waiters this call may look at, and whether the queue is empty.
local function chooseInOrder(s, mine, deaf, left)
  local chosen, leases = {}, {}
  local first, fits = redis.call('ZRANGE', s.queue, 0, 0, 'WITHSCORES'), true
  while first[1] and fits and left > 0 do
    local claim, ticket = first[1], first[2]
    local lease, ttl, headStart, wants, of = claim:match(TERMS, TERMS_AT)
    if deaf[claim:sub(1, CLIENT_END)] and not (mine and claim:sub(1, #mine) == mine) then
      lease = nil
    elseif (ticket + headStart) / 1000 + ttl < s.now then
      -- functions
      lease = wantsStill(s, claim, ticket)
    end
    if lease then
      fits = s.taken + wants <= of + 0
      if fits then
        s.taken = s.taken + wants
        chosen[#chosen + 1], leases[#chosen + 1] = claim, lease
      end
    end
    if fits then
      left = left - 1
      redis.call('ZREM', s.queue, claim)
      first = redis.call('ZRANGE', s.queue, 0, 0, 'WITHSCORES')
    end
  end
  return chosen, leases, left, not first[1]
end

-- Takes back a grant of this call whose client is gone.
local function undo(s, claim, record)
  s.taken = s.taken - claim:match(WANTS, TERMS_AT)
  if s.turns then
    -- functions
    isPaidBack(s, claim)
  end
  freeNumbers(s, record)
end

-- Turns waiters of the fair queue into holders, while there is room for the next waiter (I3, I4). Returns a list: claim and
-- token with numbers for each, grouped by client; and whether one call has looked at as many waiters as it may.
--
-- All grants to one client go in one message, which begins with `word` and is sent before the grants are written. If nobody
-- receives it, the client is gone: its grants are not written, and the search for waiters continues. Waiters that need no
-- message (`mine`, `asks`: `isTold`) are in one group, to which none is sent. `deaf`: the clients known to receive none.
--
-- If nobody is left whom others have to let pass, unfair waiters receive a message that there may be room. `by`: the client
-- that released, which ignores that message.
local function admit(s, word, by, mine, asks, deaf)
  local admitted, unfinished = {}, false
  local left, again = s.readers and MOST_READERS or MOST_ADMITTED, s.queued
  local most = left
  while again do
    again = false
    local chosen, leases, nobody
    if s.readers then
      -- functions
      chosen, leases, left, nobody = choosePhase(s, mine, asks, deaf, left)
    elseif s.turns then
      chosen, leases, left, nobody = s.groups.choose(s, mine, deaf, left)
    else
      -- functions
      chosen, leases, left, nobody = chooseInOrder(s, mine, deaf, left)
    end
    if #chosen > 0 then
      -- functions
      local groups, grants, tokens = {}, {}, {}
      for i, claim in ipairs(chosen) do
        local token
        if s.readers and claim:sub(TERMS_AT, NAMELESS_END) ~= NAMELESS then
          -- functions
          token = nextToken(s, claim, tokens)
        else
          token = tick(s)
        end
        local entry, answer = claim, token
        if not s.readers then
          -- functions
          entry, answer = giveNumbers(s, claim, token)
        end
        local group = claim:sub(1, CLIENT_END)
        if mine and claim:sub(1, #mine) == mine and (not s.readers or lineOf(s, claim) == asks) then group = TOLD end
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
        local text = word .. ' ' .. table.concat(grant.ids, ',') .. ' ' .. table.concat(grant.answers, ',') .. ' ' .. s.lock
        if client ~= TOLD and send(s, client, text) == 0 then
          -- functions
          deaf[client], again = true, true
          for i, claim in ipairs(grant.claims) do
            undo(s, claim, grant.records[i])
          end
        else
          for i, claim in ipairs(grant.claims) do
            local deadline = s.now + grant.leases[i]
            fields[#fields + 1] = grant.ids[i]
            fields[#fields + 1] = grant.records[i]
            ends[#ends + 1] = deadline
            ends[#ends + 1] = grant.ids[i]
            if last < deadline then last = deadline end
            if not brief or deadline < brief then brief = deadline end
            admitted[#admitted + 1] = claim
            admitted[#admitted + 1] = grant.answers[i]
            if s.readers and claim:sub(TERMS_AT, NAMELESS_END) ~= NAMELESS then
              -- functions
              noteOwner(s, claim, grant.tokens[i])
            end
          end
        end
      end
      if #fields > 0 then
        local life, clock = keepUntil(s, last), string.format('%.0f', s.clock)
        redis.call('HSET', s.lock, 'taken', s.taken, 'clock', clock, 'keep', s.keep, (table.unpack or unpack)(fields))
        redis.call('ZADD', s.deadlines, (table.unpack or unpack)(ends))
        redis.call('PEXPIREAT', s.deadlines, s.keep)
        if life then redis.call('PEXPIREAT', s.lock, s.keep) end
        -- A writer's turn begins only after its client has received the message.
        if s.readers and s.taken >= ALL_PERMITS then redis.call('HSET', s.lock, 'turn', WRITERS_TURN) end
        if not nobody and (brief - s.now) * 3 < admitted[1]:match(WAITING, TERMS_AT) + 0 then
          -- functions
          tellEnds(s, brief - s.now)
        end
      end
    end
    unfinished = left == 0
    if nobody then
      redis.call('HDEL', s.lock, 'queued')
      s.queued, again = nil, false
      -- If not all waiters that were found have been admitted, or there were none, deadlines of dead ones may be left (I7).
      local dead = #admitted == 0 or #admitted < 2 * (most - left)
      --[[cluster
      dead = true
      --]]
      if dead then redis.call('ZREMRANGEBYSCORE', s.deadlines, WAITER, '+inf') end
    elseif unfinished then
      again = false
    end
  end
  local passable = not s.queued
  if s.turns then passable = s.groups.keepMark(s, by, mine) end
  if passable then redis.pcall('PUBLISH', s.lock .. ':unlock', by and 'free ' .. by or 'free') end
  return admitted, unfinished
end

-- Admits the next waiters, after a hold has ended or the first waiter has left the queue. A release may also find lapsed
-- leases. The grants then count as caused by the release ('handoff').
local function vacate(s, mark, by, mine, asks)
  local more, word = lapse(s, mark)
  local admitted, unfinished = admit(s, by and 'handoff' or word, by, mine, asks, {})
  return admitted, unfinished or more
end

-- The place of a waiter in the order of grants, as far as it is known now, from 1. If a writer holds, the readers are next,
-- then the writers. Otherwise the first writer is next, then the readers, then the other writers. With groups, see
-- `placeInGroup`.
local function placeOf(s, claim)
  if s.turns then
    -- functions
    return placeInGroup(s, claim)
  end
  local line = lineOf(s, claim)
  local place = redis.call('ZRANK', line, claim) + 1
  if line == s.readers then return s.taken < ALL_PERMITS and place + 1 or place end
  if s.readers and (s.taken >= ALL_PERMITS or place > 1) then return place + redis.call('ZCOUNT', s.readers, '-inf', '+inf') end
  return place
end

-- What a reply says about the pace of the lock, behind the clock: "~<pace>", or nothing. Of a read-write lock, "~" and the
-- number of waiting readers follow, because between two writers they have a turn. With groups, see `paceOfGroups`.
local function paceOf(s)
  if not s.pace then return '' end
  if s.turns then
    -- functions
    return paceOfGroups(s)
  end
  return '~' .. s.pace .. (s.readers and '~' .. redis.call('ZCOUNT', s.readers, '-inf', '+inf') or '')
end

-- The holder whose lease ends first: the time left of its lease, how long ago it was granted, the bytes of its owner, its
-- owner and label, and the number of permits that the lock has according to its claim. Before that lease ends, a permit
-- becomes free only if a holder releases it or loses it. Without a holder: 0, 0, '0', ''.
local function firstEnd(s)
  local first = redis.call('ZRANGE', s.deadlines, 0, 0, 'WITHSCORES')
  local record = first[1] and redis.call('HMGET', s.lock, first[1])[1]
  if not record then return 0, 0, '0', '' end
  local bytes, among, names = record:match(NUMBER_AND_NAMES, RECORD_TERMS_AT)
  -- As in `namesOf` (lua/holder.lua).
  if record:sub(CLAIM_AT, CLAIM_AT) == KEPT then
    names, bytes = names:sub(bytes + 1), '0'
  end
  return first[2] - s.now, math.max(0, s.now - math.floor(record:sub(1, TOKEN_END) / 1000)), bytes, names, among
end

-- A number of permits as text. Of a larger one, Lua would print only 14 digits, and to format a number costs more than a command.
local function exactly(permits)
  return permits < MANY and permits or string.format('%.0f', permits)
end

-- If there are two queues: keeps the other one alive while a waiter is in this one, whose life `enqueue` has set.
local function linger(s, line)
  redis.call('PEXPIREAT', line == s.queue and s.otherLine or s.queue, s.queued)
end

-- Whether a caller may be granted its permits now: enough of them are free, and nobody waits. And whether permits are free, and
-- somebody waits, who may be about to be admitted or passed over.
local function mayTake(s, claim, wants, of)
  if s.turns then
    -- functions
    return mayTurn(s, claim, wants, of)
  end
  return not s.queued and s.taken + wants <= of + 0, s.queued and s.taken < of + 0
end

-- Counts the permits of a caller that is granted them at once.
local function take(s, claim, wants)
  s.taken = s.taken + wants
  if s.turns then
    -- functions
    takeTurn(s, claim, wants)
  end
end

-- Removes a waiter from its queue. Returns whether it was queued.
local function quit(s, claim)
  if s.turns then
    -- functions
    return quitGroup(s, claim)
  end
  return redis.call('ZREM', lineOf(s, claim), claim) == 1
end

-- How many callers are queued, for a caller with the limit `most`; of a semaphore with groups, only those that the limit is
-- about. Less than any limit if the caller is one of them, because it keeps its place.
local function crowdIn(s, claim, most)
  -- The dead count at first, and are left out if they would matter.
  for _, enough in ipairs({ MANY, 0 }) do
    local before = 0
    for _, line in ipairs({ s.queue, s.otherLine }) do
      local crowd
      if s.turns then
        -- functions
        crowd = crowdOfGroup(s, claim, line, enough)
      else
        crowd = redis.call('ZCOUNT', line, '-inf', '+inf')
        if crowd > 0 and crowd >= enough then
          crowd = redis.call('ZSCORE', line, claim) and -1 or countLiving(s, line, 0, crowd, false)
        end
      end
      if crowd < 0 then return NEVER_FULL end
      before = before + crowd
    end
    if before < most or before == 0 or enough == 0 then return before end
  end
end

-- What a hold adds to the pace of the lock: its length, times its permits. So the pace, divided by the permits of the semaphore,
-- is the time between two grants, however many permits each caller wants. In a read-write lock, callers wait for the ends of
-- turns: the hold that ends a turn, of the readers or of a writer, adds its length; nil: other holds of the turn go on.
local function spentBy(s, record, length)
  local wants = record:match(WANTS, RECORD_TERMS_AT)
  if not s.readers then return length * wants end
  return s.taken - wants == 0 and length or nil
end

-- Finds out whether the next waiter is dead, if it keeps others waiting: some permits are free, but fewer than it wants. The
-- waiters of a dead client are then passed over (I4). A live waiter receives a message that changes nothing. Returns the
-- clients that receive none, each with the value `true`. `client`: the one that sends this heartbeat.
local function probe(s, client, ttl)
  local deaf, claim = {}, nil
  if s.taken == 0 then return deaf end
  if s.turns then
    local head = s.groups.next(s)
    claim = head and head:sub(TOKEN_END + 1)
  else
    claim = redis.call('ZRANGE', s.queue, 0, 0)[1]
  end
  local ahead = claim and claim:sub(1, CLIENT_END)
  if claim and ahead ~= client then
    local wants, of = claim:match(WANTS, TERMS_AT)
    if s.taken < of + 0 and s.taken + wants > of + 0 then
      deaf[ahead] = send(s, ahead, 'ends ' .. ttl .. ' ' .. s.lock) == 0
    end
  end
  return deaf
end
