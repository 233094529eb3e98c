-- The groups of a semaphore, which take turns: start-time fair queuing. Scripts use these functions only while a semaphore
-- has groups: from the first call with a group until no group has a hold, a waiter, or more than its share. While it has
-- some, `queued` in its hash is not the time alone, but MARK and the time, if anybody is queued. So a script learns it from
-- what it reads anyway.
--
-- Each grant has a start tag and a finish tag: finish = start + permits / weight. The virtual time is the start tag of the
-- last grant. The next job of a group starts at the group's last finish tag, or at the virtual time if that is later. So a
-- group that had nothing to do, or was full, has saved nothing up (I3). The ZSET `turns` has the first waiters of all groups
-- that are not full, "<ticket><claim>", by the start tags of the next jobs of these groups; equal tags are in the order of
-- tickets. The first waiter of a full group is not in `turns`, so nobody waits for it. No script walks the groups.
--
-- Waiters without a group are in the same queue as in a semaphore without groups, so nothing has to be moved when the first
-- group comes or the last one goes. All other waiters share the ZSET `waiting`, whatever their groups are: "<ticket><claim>"
-- → the number of the group. So the waiters of a group stand together, in the order of their tickets. ZCOUNT finds where they
-- begin and how many they are, and ZRANGE the first of them.
--
-- The hash of the lock has the permits that a group's holds take, in the field ":<group>", and the sum of these fields in
-- `grouped`. So if Redis loses the holds, it loses these numbers too, and no limit is ever exceeded (I1). All else may be lost
-- without harm, and heartbeats restore it. It is in the HASH `shares`: "f<group>", the last finish tag; "w<group>", the weight,
-- if anybody gave one; "l<group>", the limit in the newest call, or NO_LIMIT; "n<group>", its number; "s<group>", its member of
-- `turns`; "t<id>", the ticket of a waiter; `v`, the virtual time; `top`, the largest finish tag of a group; `count`, the last
-- number. The group '' is that of the calls without one.
--
-- A group that has neither holds nor waiters is remembered if its finish tag is ahead, or if it has a weight. The time at which
-- it became idle is in `turns` too, as ":<group>" behind all waiters, so that the group is forgotten after MEMORY.
--
-- Such a call has three more values in its claim, behind the permits: "<permits>/<of>;<limit>;<weight>;<group>", where limit
-- and weight may be empty. The client writes the name of the group without spaces and semicolons (src/kinds/claim.ts).
--
-- The state `s` (lua/lock.lua) has the keys `waiting`, `turns` and `shares`; `groups`, the functions that all scripts need; and `grouped`: the semaphore is marked, and the
-- waiters without a group are in `turns`.
--
-- Constants
--   GROUPED = '^ %d+ %S+ %d+ %d+ %d+/%d+[s%d.]*;'                    a claim with a group
--   GROUP = '^ %d+ %S+ %d+ %d+ %d+/%d+[s%d.]*;(%d*);([^;]*);(%S+) '  limit, weight, group
--   NO_LIMIT = '-'            stands for the limit of a group that may have all permits
--   MARK = 'g'                the first character of `queued` while the semaphore has groups
--   IDLE = 8000000000000000   what the times of idle groups in `turns` have more than others, ms; larger than all tags
--   MOST_EXPIRED = 250        expired waiters that are removed at once, at most
--   MOST_FORGOTTEN = 10       idle groups that one call forgets, at most
--   MOST_DESCRIBED = 6        groups in a reply, at most

-- The group of a claim, its limit and its weight; empty texts, if the claim has none.
local function groupOf(claim)
  local limit, weight, group = claim:match(GROUP, TERMS_AT)
  if group then return group, limit, weight end
  return '', '', ''
end

-- The first waiter of the group whose turn it is: its ticket and its claim; nil: no group waits, except groups that are full.
local function nextTurn(s)
  local found = redis.call('ZRANGE', s.turns, 0, 0, 'WITHSCORES')
  return found[1] and found[2] + 0 < IDLE and found[1] or nil
end

-- The claim and the ticket of the first waiter of a group; nil: nobody of the group waits. `number`: that of the group; nil or
-- false: none of its callers has queued.
local function firstIn(s, group, number)
  if group == '' then
    local found = redis.call('ZRANGE', s.queue, 0, 0, 'WITHSCORES')
    if found[1] then return found[1], string.format('%.0f', found[2]) end
  elseif number then
    local at = redis.call('ZCOUNT', s.waiting, '-inf', '(' .. number)
    local found = redis.call('ZRANGE', s.waiting, at, at, 'WITHSCORES')
    if found[1] and found[2] + 0 == number + 0 then return found[1]:sub(TOKEN_END + 1), found[1]:sub(1, TOKEN_END) end
  end
end

-- Removes a waiter from its queue. If it has a group, its ticket is also in `shares`, so that a caller that leaves is found
-- without its ticket. Returns whether the waiter was queued. An entry without that ticket is left over from a loss of data.
local function removeFrom(s, claim, ticket, group)
  if group == '' then return redis.call('ZREM', s.queue, claim) == 1 end
  redis.call('ZREM', s.waiting, ticket .. claim)
  return redis.call('HDEL', s.shares, 't' .. claim:sub(1, ID_END)) == 1
end

-- Decides anew whether a group may be next, after its first waiter or the permits of its holds have changed. `adds`: how many
-- permits its holds take more than before. `refunds`: a grant was not made after all, so the group gets its finish tag back.
-- `given`: the weight in the newest call of the group; empty: it is as it was.
local function settleGroup(s, group, adds, refunds, given)
  local shares, turns = s.shares, s.turns
  local known = redis.call('HMGET', shares, 'f' .. group, 'w' .. group, 's' .. group, 'v', 'top', 'n' .. group)
  local finish, weight, stands = (known[1] or 0) + 0, (known[2] or 1) + 0, known[3]
  local virtual = tonumber(known[4] or nil)
  if not virtual then
    virtual = (redis.call('ZRANGE', turns, 0, 0, 'WITHSCORES')[2] or 0) + 0
    if virtual >= IDLE then virtual = 0 end
  end
  if given ~= '' and given + 0 ~= weight then
    weight = given + 0
    redis.call('HSET', shares, 'w' .. group, given)
  end

  local has = 0
  if group ~= '' then
    local held = redis.call('HMGET', s.lock, ':' .. group, 'grouped')
    has = (held[1] or 0) + adds
    local all = (held[2] or 0) + adds
    if adds ~= 0 and has > 0 then
      redis.call('HSET', s.lock, ':' .. group, has, 'grouped', all)
    elseif adds ~= 0 then
      redis.call('HDEL', s.lock, ':' .. group)
      if all > 0 then
        redis.call('HSET', s.lock, 'grouped', all)
      else
        redis.call('HDEL', s.lock, 'grouped')
      end
    end
  end
  if adds > 0 then
    virtual = math.max(virtual, finish)
    finish = virtual + adds / weight
    local top = math.max((known[5] or 0) + 0, group ~= '' and finish or 0)
    local tags = { string.format('%.17g', virtual), string.format('%.17g', finish), string.format('%.17g', top) }
    redis.call('HSET', shares, 'v', tags[1], 'f' .. group, tags[2], 'top', tags[3])
  elseif refunds then
    finish = finish + adds / weight
    redis.call('HSET', shares, 'f' .. group, string.format('%.17g', finish))
  end

  local head, at, expired
  local many = 0
  repeat
    head, at = firstIn(s, group, known[6])
    expired = head and many < MOST_EXPIRED and not wantsStill(s, head, at)
    if expired then
      many = many + 1
      removeFrom(s, head, at, group)
    end
  until not expired

  local room = head
  if head and group ~= '' then
    local limit = head:match(GROUP, TERMS_AT)
    room = limit == '' or has + head:match(WANTS, TERMS_AT) <= limit + 0
  end
  local member = room and at .. head
  if stands and stands ~= member then redis.call('ZREM', turns, stands) end
  if room then
    redis.call('ZADD', turns, string.format('%.17g', math.max(virtual, finish)), member)
    if stands ~= member then redis.call('HSET', shares, 's' .. group, member) end
  elseif stands then
    redis.call('HDEL', shares, 's' .. group)
  end
  if not head and has == 0 then
    if finish > virtual or weight ~= 1 then
      redis.call('ZADD', turns, string.format('%.0f', IDLE + s.now), ':' .. group)
    else
      redis.call('HDEL', shares, 'f' .. group, 'w' .. group, 'l' .. group, 'n' .. group)
    end
  end
end

-- The group of a hold that has ended has room again, so its turn may come (I4).
local function hasRoomAgain(s, record)
  local claim = record:sub(CLAIM_AT)
  local group = groupOf(claim)
  if group ~= '' then s.groups.settle(s, group, -claim:match(WANTS, TERMS_AT), false, '') end
end

-- The group of a waiter that was chosen and then not admitted gets back what that has cost.
local function isPaidBack(s, claim)
  local group = groupOf(claim)
  s.groups.settle(s, group, -claim:match(WANTS, TERMS_AT), true, '')
end

-- Selects the waiters to admit, and returns them as `chooseInOrder` does: the first waiter of the group whose turn it is, until
-- the next one does not fit. If the first waiter of the first group wants more than is free, nobody passes it.
local function chooseTurns(s, mine, deaf, left)
  local chosen, leases = {}, {}
  if not s.grouped then
    s.grouped = true
    settleGroup(s, '', 0, false, '')
  end
  local fits, head = true, nil
  repeat
    head = nextTurn(s)
    if head then
      local ticket, claim, adds = head:sub(1, TOKEN_END), head:sub(TOKEN_END + 1), 0
      local group = groupOf(claim)
      local told = mine and claim:sub(1, #mine) == mine
      local lease = (told or not deaf[claim:sub(1, CLIENT_END)]) and wantsStill(s, claim, ticket)
      local wants, of = claim:match(WANTS, TERMS_AT)
      fits = not lease or s.taken + wants <= of + 0
      if fits then
        left = left - 1
        redis.call('ZREM', s.turns, head)
        if removeFrom(s, claim, ticket, group) and lease then
          adds = wants + 0
          s.taken = s.taken + adds
          chosen[#chosen + 1], leases[#chosen + 1] = claim, lease
        end
        settleGroup(s, group, adds, false, '')
      end
    end
  until not head or not fits or left == 0
  return chosen, leases, left, not head and redis.call('EXISTS', s.queue, s.waiting) == 0
end

-- Keeps the mark of a semaphore with groups, or removes it when the last group is gone: no group has a hold or a waiter, and
-- none has had more than its share while others wait or hold. It also forgets groups that have been idle for MEMORY. Returns
-- whether a caller that does not queue may try to take what is free: nobody waits, or only waiters of full groups.
local function updateMark(s, by, mine)
  local lock, waiting, turns, shares = s.lock, s.waiting, s.turns, s.shares
  local from = redis.call('ZCOUNT', turns, '-inf', string.format('(%.0f', IDLE))
  local idle = redis.call('ZRANGE', turns, from, from + MOST_FORGOTTEN - 1, 'WITHSCORES')
  for i = 1, #idle, 2 do
    if idle[i + 1] - IDLE > s.now - MEMORY then break end
    local group = idle[i]:sub(2)
    redis.call('ZREM', turns, idle[i])
    if not firstIn(s, group, redis.call('HMGET', shares, 'n' .. group)[1]) and not redis.call('HMGET', lock, ':' .. group)[1] then
      redis.call('HDEL', shares, 'f' .. group, 'w' .. group, 'l' .. group, 'n' .. group)
    end
  end
  local busy = s.queued or s.taken > 0
  local tags = redis.call('HMGET', shares, 'v', 'top', 's')
  local ahead = busy and (tags[2] or 0) + 0 > (tags[1] or 0) + 0
  local held = redis.call('HMGET', lock, 'grouped')[1]
  s.grouped = s.clock ~= NO_CLOCK and (held or ahead or redis.call('EXISTS', waiting) == 1)
  if s.grouped then
    redis.call('HSET', lock, 'queued', MARK .. (s.queued or ''))
    redis.call('PEXPIREAT', waiting, s.keep)
  else
    if tags[3] then redis.call('ZREM', turns, tags[3]) end
    redis.call('HDEL', shares, 's', 'f')
    if tags[1] and not busy then
      redis.call('HSET', shares, 'v', string.format('%.17g', math.max(tags[1] + 0, (tags[2] or 0) + 0)))
    end
    if s.queued then
      redis.call('HSET', lock, 'queued', s.queued)
    else
      redis.call('HDEL', lock, 'queued')
    end
  end
  local expiry = math.max(s.queued or 0, s.now + MEMORY)
  redis.call('PEXPIREAT', turns, expiry)
  redis.call('PEXPIREAT', shares, expiry)
  return not s.queued or (by or not mine) and not nextTurn(s)
end

-- Whether a caller may be granted its permits now: enough of them are free, its group has room, and nobody is first. Waiters
-- of groups that are full are passed. And whether permits are free, and a group that is not full has a waiter, which may be
-- about to be admitted or passed over.
local function mayTurn(s, claim, wants, of)
  local pending = s.queued and s.taken < of + 0 and (not s.grouped or s.groups.next(s))
  local may = s.taken + wants <= of + 0 and not pending
  local group, limit = groupOf(claim)
  if may and s.queued then
    local number = redis.call('HMGET', s.shares, 'n' .. group)[1]
    may = not number or redis.call('ZCOUNT', s.waiting, number, number) == 0
  end
  if may and limit ~= '' then may = (redis.call('HMGET', s.lock, ':' .. group)[1] or 0) + wants <= limit + 0 end
  return may, pending
end

-- Counts the permits of a caller that is granted them at once as a turn of its group.
local function takeTurn(s, claim, wants)
  local group, limit, weight = groupOf(claim)
  if group ~= '' then redis.call('HSET', s.shares, 'l' .. group, limit == '' and NO_LIMIT or limit) end
  s.groups.settle(s, group, wants + 0, false, weight)
  if not s.grouped then redis.call('HSET', s.lock, 'queued', MARK .. (s.queued or '')) end
  local expiry = math.max(s.queued or 0, s.now + MEMORY)
  redis.call('PEXPIREAT', s.turns, expiry)
  redis.call('PEXPIREAT', s.shares, expiry)
end

-- Puts a waiter of a group into `waiting`, under the number of its group; a group that has none gets the next one. A waiter
-- that is there keeps its ticket, which is returned; nil: it was not there.
--
-- If `shares` was lost, the numbers of the waiters in the queue say nothing any more, so the queue is dropped, too. The
-- heartbeats of these waiters bring them back, in the order of their tickets. The waiters without a group have to be settled
-- anew.
local function putInto(s, claim, ticket, group)
  local shares, field = s.shares, 't' .. claim:sub(1, ID_END)
  local told = redis.call('HMGET', shares, field, 'n' .. group, 'count')
  local known, number = told[1], told[2]
  if not known then redis.call('HSET', shares, field, ticket) end
  if not number then
    if not told[3] then
      redis.call('UNLINK', s.waiting, s.turns)
      s.grouped = false
    end
    number = string.format('%.0f', (told[3] or 0) + 1)
    redis.call('HSET', shares, 'n' .. group, number, 'count', number)
  end
  redis.call('ZADD', s.waiting, number, (known or ticket) .. claim)
  return known or nil
end

-- Puts a waiter into its queue. If it is there already, it keeps its ticket (I5). Returns its ticket, and whether it was not
-- there.
local function joinGroup(s, claim, ticket, ttl)
  local group, limit, weight = groupOf(claim)
  local known
  if group == '' then
    if redis.call('ZADD', s.queue, 'NX', ticket, claim) == 0 then
      known = string.format('%.0f', redis.call('ZSCORE', s.queue, claim))
    end
  else
    redis.call('HSET', s.shares, 'l' .. group, limit == '' and NO_LIMIT or limit)
    known = putInto(s, claim, ticket, group)
  end
  -- A waiter that was there is alive, so it must not be passed over below.
  if known then redis.call('ZADD', s.deadlines, WAITER + s.now + ttl, claim:sub(1, ID_END)) end
  s.groups.settle(s, group, 0, false, weight)
  return known or ticket, not known
end

-- Removes a waiter from its queue. Returns whether it was queued.
local function quitGroup(s, claim)
  local group = groupOf(claim)
  local ticket = group == '' or redis.call('HMGET', s.shares, 't' .. claim:sub(1, ID_END))[1]
  local gone = ticket and removeFrom(s, claim, ticket, group)
  s.groups.settle(s, group, 0, false, '')
  return gone
end

-- Puts waiters back into their queues, with their old tickets: `joins` has ticket, claim for each. A waiter that is still there
-- keeps its place. Their groups are settled in any case, so a heartbeat restores whatever Redis has lost.
local function rejoinGroups(s, joins)
  local names, weights = {}, {}
  for i = 1, #joins, 2 do
    local ticket, claim = joins[i], joins[i + 1]
    local group, _, weight = groupOf(claim)
    if group == '' then
      redis.call('ZADD', s.queue, 'NX', ticket, claim)
    else
      putInto(s, claim, ticket, group)
    end
    if not weights[group] then names[#names + 1] = group end
    weights[group] = weight
  end
  for _, group in ipairs(names) do
    local known = redis.call('HMGET', s.shares, 'w' .. group)[1]
    s.groups.settle(s, group, 0, false, known and '' or weights[group])
  end
end

-- How many callers are in a queue, for a caller with a limit: of its own group, or all, if it has none; -1 if it is one of
-- them, because it keeps its place. `most`: with fewer, it may join, so no exact number is needed.
local function crowdOfGroup(s, claim, line, most)
  local group = groupOf(claim)
  local grouped, number = line == s.waiting, group ~= '' and redis.call('HMGET', s.shares, 'n' .. group)[1]
  if group ~= '' and not (grouped and number) then return 0 end
  local crowd = redis.call('ZCOUNT', line, number or '-inf', number or '+inf')
  if crowd == 0 or crowd < most then return crowd end
  local queued
  if grouped then
    queued = redis.call('HMGET', s.shares, 't' .. claim:sub(1, ID_END))[1]
  else
    queued = redis.call('ZSCORE', line, claim)
  end
  if queued then return -1 end
  return countLiving(s, line, number and redis.call('ZCOUNT', line, '-inf', '(' .. number) or 0, crowd, grouped)
end

-- The place of a waiter among the waiters of its group, and when the turns of this group come: "<place>,<number of the group>,
-- <start tag of its next job>,<jobs per unit>,<groups>", where the last is how many groups have a turn before; if the group is
-- full, "<place>,<limit>". A caller that does not wait gets the place that it would have. The place in the order of all grants
-- depends on the turns of all groups, so only `inspect` knows it, and a client estimates it (src/kinds/permits/turns.ts).
local function placeInGroup(s, claim)
  local group, limit = groupOf(claim)
  local known = redis.call('HMGET', s.shares, 't' .. claim:sub(1, ID_END), 'n' .. group, 's' .. group, 'w' .. group, 'f' .. group, 'v')
  local number, wants = known[2] or 0, claim:match(WANTS, TERMS_AT)
  local before
  if group == '' then
    before = redis.call('ZRANK', s.queue, claim) or redis.call('ZCOUNT', s.queue, '-inf', '+inf')
  else
    local rank = known[1] and redis.call('ZRANK', s.waiting, known[1] .. claim)
    before = rank and rank - redis.call('ZCOUNT', s.waiting, '-inf', '(' .. number)
      or redis.call('ZCOUNT', s.waiting, number, number)
  end
  local place = before + 1
  local start = known[3] and redis.call('ZSCORE', s.turns, known[3])
  if not start and limit ~= '' and (redis.call('HMGET', s.lock, ':' .. group)[1] or 0) + wants > limit + 0 then
    return place .. ',' .. limit
  end
  local rate = (known[4] or 1) / wants
  start = start or string.format('%.17g', math.max((known[5] or 0) + 0, (known[6] or 0) + 0))
  local groups = redis.call('ZCOUNT', s.turns, '-inf', string.format('%.17g', start + before / rate))
  if known[3] then groups = groups - 1 end
  return place .. ',' .. number .. ',' .. start .. ',' .. string.format('%.9g', rate) .. ',' .. groups
end

-- What a reply says about the pace of the lock, and about some of the groups whose turn may come: "~<pace>~<waiters>" and for
-- each of these groups ";<number>,<start tag>,<jobs per unit>,<waiters>". From these, a client estimates how many waiters of all
-- groups are before one of its own (src/kinds/permits/turns.ts). Many groups would cost too much, so those are described that
-- follow each other from a place which changes from call to call.
local function paceOfGroups(s)
  local alone = redis.call('ZCOUNT', s.queue, '-inf', '+inf')
  local told = { alone + redis.call('ZCOUNT', s.waiting, '-inf', '+inf') }
  local many = redis.call('ZCOUNT', s.turns, '-inf', string.format('(%.0f', IDLE))
  local from = many > MOST_DESCRIBED and s.micros % (many - MOST_DESCRIBED + 1) or 0
  local some = many > 0 and redis.call('ZRANGE', s.turns, from, math.min(many, from + MOST_DESCRIBED) - 1, 'WITHSCORES') or {}
  local fields, names = {}, {}
  for i = 1, #some, 2 do
    names[i] = groupOf(some[i]:sub(TOKEN_END + 1))
    fields[i], fields[i + 1] = 'n' .. names[i], 'w' .. names[i]
  end
  local known = #some > 0 and redis.call('HMGET', s.shares, (table.unpack or unpack)(fields))
  for i = 1, #some, 2 do
    local number, rate = known[i] or 0, (known[i + 1] or 1) / some[i]:sub(TOKEN_END + 1):match(WANTS, TERMS_AT)
    local waits = names[i] == '' and alone or redis.call('ZCOUNT', s.waiting, number, number)
    told[#told + 1] = table.concat({ number, some[i + 1], string.format('%.9g', rate), waits }, ',')
  end
  return '~' .. s.pace .. '~' .. table.concat(told, ';')
end

-- The permits of a retained hold stay taken, also in its group. So if the group is full, its first waiter is told when they
-- become free. Otherwise, `tellEnds` tells it.
local function tellGroup(s, record, lasts)
  local group = groupOf(record:sub(CLAIM_AT))
  local leader = firstIn(s, group, redis.call('HMGET', s.shares, 'n' .. group)[1])
  if leader then redis.pcall('PUBLISH', INBOX .. leader:sub(1, CLIENT_END), 'ends ' .. lasts .. ' ' .. s.lock) end
end

-- What `inspect` has to know about the groups of the holders and waiters on a page, to tell the order of the next grants: the
-- virtual time; then for each group its name, last finish tag and weight. `page`: claim, ticket for each waiter.
local function standingOf(s, records, page)
  local standing, claims, seen = { redis.call('HMGET', s.shares, 'v')[1] or '0' }, {}, {}
  for _, record in ipairs(records) do
    claims[#claims + 1] = record:sub(CLAIM_AT)
  end
  for i = 1, #page, 2 do
    claims[#claims + 1] = page[i]
  end
  for _, claim in ipairs(claims) do
    local group = groupOf(claim)
    if not seen[group] then
      seen[group] = true
      local known = redis.call('HMGET', s.shares, 'f' .. group, 'w' .. group)
      for _, value in ipairs({ group, known[1] or '0', known[2] or '1' }) do
        standing[#standing + 1] = value
      end
    end
  end
  return standing
end

-- The rank from which a page of `waiting` begins (`pageFrom`).
local function pageFromGroup(s, ticket, behind)
  local rank = redis.call('ZRANK', s.waiting, ticket .. behind)
  if rank then return rank + 1 end
  local number = redis.call('HMGET', s.shares, 'n' .. groupOf(behind))[1]
  return redis.call('ZCOUNT', s.waiting, '-inf', '(' .. (number or 0))
end

-- Adds the groups to the state. `mark`: the text of `queued`; if it is none, the call brings the first group.
local function withGroups(s, waiting, turns, shares, mark)
  s.waiting, s.turns, s.shares, s.otherLine = waiting, turns, shares, waiting
  s.groups = { next = nextTurn, settle = settleGroup, choose = chooseTurns, keepMark = updateMark }
  s.grouped = mark and not s.queued
  if s.grouped then
    s.queued = tonumber(mark:sub(2))
    return
  end
  -- If the lock's key was lost, the first call after that may have been one without a group, which does not know `waiting`.
  local left = redis.call('EXISTS', waiting) + (s.clock == NO_CLOCK and redis.call('EXISTS', s.queue) or 0)
  if left > 0 and not s.queued then s.queued = LIFE_UNKNOWN end
end
