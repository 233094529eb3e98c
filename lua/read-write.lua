-- A read-write lock: its turns, and its owners. It is a semaphore with more permits than there can be readers: a writer wants
-- all of them, a reader one (src/kinds/permits/read-write.ts).
--
-- Readers have a queue of their own, because all waiting readers are admitted together, and so no script has to search for
-- them among the writers.
--
-- What an owner with a name holds is recorded, so that it may re-enter: in a field of the lock's hash, named after the owner,
-- "<token> <id of the owner's first hold> <sum of the permits that its holds want>".
--
-- Constants
--   ALL_PERMITS = 1000000000  the permits that a writer wants; a reader wants 1
--   MOST_READERS = 2000      waiters that one call looks at, at most; the server needs no more than a few ms for them
--   READERS_TURN = 'r'       the value of the field `turn` after readers were admitted last
--   WRITERS_TURN = 'w'       the value of the field `turn` after a writer was admitted last
--   OWNED_BY = '@'           the first character of the field of an owner; no id begins with it
--   FIRST_AT = 18            the first character of the id in such a field
--   FIRST_END = 45           the last character of that id
--   OWNED_AT = 47            the first character of the sum

-- The owner of a claim, which has a name, and the record of what it holds; false: it holds nothing.
local function ownerOf(s, claim)
  local size, names = claim:match(NAMES_BEHIND, TERMS_AT)
  local owner = names:sub(1, size)
  return owner, redis.call('HMGET', s.lock, OWNED_BY .. owner)[1]
end

-- The token of a new hold of an owner with a name. All its holds have one token, as if it had re-entered (I2), whether the
-- others are older or are granted by the same call. With two tokens, a resource that has seen the larger one would refuse
-- what the owner writes with the smaller one.
local function tokenOf(s, claim, granted, ticket)
  local owner, known = ownerOf(s, claim)
  granted[owner] = granted[owner] or known and known:sub(1, TOKEN_END) or ticket
  return granted[owner]
end

-- Records a new hold of an owner with a name. When such an owner begins to hold, its other waiters learn this from the
-- message 'entered'. If the caller of a hold gave no name, the calls that are nested in that hold have its id as their owner.
-- Such an owner has no other waiters, so no message is sent.
local function noteOwner(s, claim, token)
  local owner, known = ownerOf(s, claim)
  local sum = (known and known:sub(OWNED_AT) or 0) + claim:match(WANTS, TERMS_AT)
  local first = known and known:sub(1, FIRST_END) or token .. ' ' .. claim:sub(1, ID_END)
  redis.call('HSET', s.lock, OWNED_BY .. owner, first .. ' ' .. string.format('%.0f', sum))
  local inside = #owner == ID_END and owner:sub(1, CLIENT_END) == claim:sub(1, CLIENT_END)
  if not known and not inside then redis.pcall('PUBLISH', s.lock .. ':unlock', 'entered ' .. owner) end
end

-- Takes a hold that has ended out of the record of its owner. A retained hold is no longer there.
local function forgetOwner(s, record)
  if record:sub(RECORD_TERMS_AT, RECORD_NAMELESS_END) == NAMELESS or record:sub(CLAIM_AT, CLAIM_AT) == KEPT then return end
  local owner, known = ownerOf(s, record:sub(CLAIM_AT))
  local sum = known and known:sub(OWNED_AT) - record:match(WANTS, RECORD_TERMS_AT) or 0
  if sum > 0 then
    redis.call('HSET', s.lock, OWNED_BY .. owner, known:sub(1, FIRST_END) .. ' ' .. string.format('%.0f', sum))
  else
    redis.call('HDEL', s.lock, OWNED_BY .. owner)
  end
end

-- Whether a waiter may re-enter, because its owner holds. If the message 'entered' was lost, the client learns this only from
-- the reply to a heartbeat: that reply names one holder only, and there may be several.
local function mayReEnter(s, claim)
  if claim:sub(TERMS_AT, NAMELESS_END) == NAMELESS then return false end
  local _, known = ownerOf(s, claim)
  return known and (claim:match(WANTS, TERMS_AT) == '1' or known:sub(OWNED_AT) + 0 >= ALL_PERMITS)
end

-- The lease that a waiter wants; nil or false: it is dead.
local function leaseFor(s, claim, ticket, mine, asks, deaf)
  if deaf[claim:sub(1, CLIENT_END)] and not isTold(s, claim, mine, asks) then return nil end
  return (wantsStill(s, claim, ticket))
end

-- Selects the waiters to admit, and returns them as `chooseInOrder` does. The rule is phase-fair (Brandenburg and Anderson,
-- "Spin-based reader-writer synchronization for multiprocessor real-time systems", 2010): while readers and writers wait,
-- readers' turns and writers' turns alternate. So a reader waits for one writer's turn at most. Among themselves, writers go
-- in the order of their tickets (I3).
--
--   1. If a writer holds, nobody is admitted.
--   2. If a writer's turn has ended, or no writer waits, all waiting readers are admitted.
--   3. If nobody holds, the first writer is admitted.
--
-- Example: A reads, B waits to write, C waits to read. C is not admitted beside A; B is next. While B writes, C and D wait to
-- read and E waits to write. C and D are next, together, and then E.
local function choosePhase(s, mine, asks, deaf, left)
  local chosen, leases = {}, {}
  local turn = redis.call('HMGET', s.lock, 'turn')[1]
  local latest = turn
  if s.taken >= ALL_PERMITS then
    latest = WRITERS_TURN
  else
    local writer, wanted, first
    repeat
      first = redis.call('ZRANGE', s.queue, 0, 0, 'WITHSCORES')
      wanted = first[1] and leaseFor(s, first[1], first[2], mine, asks, deaf)
      if wanted then
        writer = first[1]
      elseif first[1] then
        left = left - 1
        redis.call('ZREM', s.queue, first[1])
      end
    until not first[1] or writer or left == 0
    if left > 0 and (not writer or turn == WRITERS_TURN) then
      local popped = redis.call('ZPOPMIN', s.readers, left)
      left = left - math.floor(#popped / 2)
      for i = 1, #popped, 2 do
        local lease = leaseFor(s, popped[i], popped[i + 1], mine, asks, deaf)
        if lease then
          s.taken = s.taken + 1
          chosen[#chosen + 1], leases[#chosen + 1] = popped[i], lease
        end
      end
      -- If this call has reached its limit, some readers may still be queued. Then `turn` keeps its value, so that the next
      -- call admits them too.
      if s.taken > 0 and left > 0 then latest = READERS_TURN end
    end
    if writer and s.taken == 0 and left > 0 then
      redis.call('ZREM', s.queue, writer)
      s.taken, left = ALL_PERMITS, left - 1
      chosen, leases = { writer }, { wanted }
    end
  end
  if latest ~= turn then redis.call('HSET', s.lock, 'turn', latest) end
  return chosen, leases, left, redis.call('EXISTS', s.queue) == 0 and redis.call('EXISTS', s.readers) == 0
end

-- Grants the lock again, at once, to an owner with a name that already holds it, regardless of waiters: a holder must not
-- wait behind waiters that wait for this holder. Returns the reply; nil: the owner does not re-enter. An owner that reads or
-- writes may read again, and may continue to read after it has ended writing. An owner that writes may write again. If an
-- owner only reads and asks to write, it would wait for itself. So this request is refused as a deadlock, if it may be
-- `nested` in that hold.
--
-- If the caller of the first hold gave no name, the owner is the id of that hold. Only the client of the first hold knows
-- this id. So only calls of that client re-enter such a hold.
--
-- A re-entry has a lease of its own. A re-entry by the client of the first hold runs inside the first hold
-- (src/key/holds.ts), so the first hold must not end before it. If such a re-entry wants the same as the first hold (to read,
-- or to write), the first hold is prolonged to the end of the re-entry's lease.
local function reEnter(s, claim, wants, record, mark, nested)
  local id, line = claim:sub(1, ID_END), lineOf(s, claim)
  if lapse(s, mark) then return 'unfinished' end
  local owner, known = ownerOf(s, claim)
  local token, first, sum = nil, nil, 0
  if known then
    token, first, sum = known:sub(1, TOKEN_END), known:sub(FIRST_AT, FIRST_END), known:sub(OWNED_AT) + 0
  end
  local nameless = #owner == ID_END and id:sub(1, CLIENT_END) == owner:sub(1, CLIENT_END)
  local outer = nameless and redis.call('HMGET', s.lock, owner)[1]
  if outer and outer:sub(RECORD_TERMS_AT, RECORD_NAMELESS_END) == NAMELESS then
    token, first, sum = outer:sub(1, TOKEN_END), owner, sum + outer:match(WANTS, RECORD_TERMS_AT)
  end
  -- `again`: this id has re-entered before. The client has not received the reply, and has repeated the request. The new
  -- reply reports the same hold. But `record` was read before lapsed holds were ended. If that hold was one of them, it has
  -- no deadline now, and the owner re-enters anew.
  local lives = record and tonumber(redis.call('ZSCORE', s.deadlines, id) or nil)
  local again = lives and first ~= id and record:sub(1, TOKEN_END) == token
  local may = token and not lives
  local upgrade = may and wants ~= '1' and sum < ALL_PERMITS
  -- A writer may have been waiting before its owner began to read in another call. Such a writer is not refused, and keeps
  -- waiting. If its answer was lost, the client does not know that it waits, but its claim is queued.
  if upgrade and nested and not (s.queued and redis.call('ZSCORE', line, claim)) then return 'deadlock' end
  if not again and (not may or upgrade) then return nil end
  if s.queued then redis.call('ZREM', line, claim) end
  -- A re-entry has no `minHold` of its own.
  claim = claim:gsub('%d+m%d+,(%d+)', '%1', 1)
  local ends, raised = lives or s.now + claim:match(LEASE, TERMS_AT), ''
  local around = first:sub(1, CLIENT_END) == id:sub(1, CLIENT_END) and redis.call('HMGET', s.lock, first)[1]
  if around and around:match(WANTS, RECORD_TERMS_AT) == wants then
    if (redis.call('ZSCORE', s.deadlines, first) or ends) + 0 < ends then redis.call('ZADD', s.deadlines, ends, first) end
    raised = ' ' .. first
  end
  if may then
    s.taken = s.taken + wants
    local _, lease, brief = writeHold(s, claim, token, string.format('%.0f', s.clock))
    if brief then tellEnds(s, lease) end
  end
  return 'reentered ' .. token .. ' ' .. ends - s.now .. raised
end
