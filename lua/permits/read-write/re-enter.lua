-- re-enter: grants the lock again, at once, to an owner with a name that already holds it, regardless of waiters. An
-- owner that reads or writes may read again, and may continue to read after it has ended writing. An owner that writes
-- may write again. If an owner only reads and asks to write, it would wait for itself. So this request is refused as a
-- deadlock.
--
-- If the caller of the first hold gave no name, the owner is the id of that hold. Only the client of the first hold
-- knows this id. So only calls of that client re-enter such a hold.
--
-- A re-entry has a lease of its own. A re-entry by the client of the first hold runs inside the first hold
-- (src/key/holds.ts), so the first hold must not end before it. If such a re-entry wants the same as the first hold
-- (to read, or to write), the first hold is prolonged to the end of the re-entry's lease.
--
-- Takes
--   claim      string  the caller's claim
--   id         string  its id
--   wants      string  the permits that it wants
--   record?    string  see lua/shared/permits.lua; present: the id already holds
--   lock       HASH    the lock
--   deadlines  ZSET    see lua/shared/live.lua
--   queue      ZSET    see lua/permits/read-write/queues.lua
--   readers    ZSET    see lua/permits/read-write/queues.lua
--   none?      string  see lua/permits/read-write/queues.lua
--   now        ms      the server's time
--   clock      µs      the last ticket or token
--   queued?    ms      the time until which the queues' keys live
--   mark?      string  see lua/shared/permits.lua
--   nested     boolean the call may be nested in a hold of its owner
-- Changes
--   taken      number  includes what the claim wants
--   keep       ms      grows if the lock's key has to live longer
-- Replies
--   reentered  token, ttl ms: the owner already holds the lock. If an id follows, it is the id of the owner's first hold, which lasts at least as long as this one
--   deadlock   the owner reads, and would wait for itself
if taken > 0 and claim:sub(TERMS_AT, NAMELESS_END) ~= NAMELESS then
  -- include: queues
  -- include: line
  -- include: lapse
  if more then return 'unfinished' end
  -- include: owner
  local token, first, sum = nil, nil, 0
  if known then
    token, first, sum = known:sub(1, TOKEN_END), known:sub(FIRST_AT, FIRST_END), known:sub(OWNED_AT) + 0
  end
  local nameless = #owner == ID_END and id:sub(1, CLIENT_END) == owner:sub(1, CLIENT_END)
  local outer = nameless and redis.call('HMGET', lock, owner)[1]
  if outer and outer:sub(RECORD_TERMS_AT, RECORD_NAMELESS_END) == NAMELESS then
    token, first, sum = outer:sub(1, TOKEN_END), owner, sum + outer:match(WANTS, RECORD_TERMS_AT)
  end
  -- `again`: this id has re-entered before. The client has not received the reply, and has repeated the request. The
  -- new reply reports the same hold. But `record` was read before lapsed holds were ended. If that hold was one of
  -- them, it has no deadline now, and the owner re-enters anew.
  local lives = record and tonumber(redis.call('ZSCORE', deadlines, id) or nil)
  local again = lives and first ~= id and record:sub(1, TOKEN_END) == token
  local enters = token and not lives
  local upgrade = enters and wants ~= '1' and sum < ALL_PERMITS
  -- A writer may have been waiting before its owner began to read in another call. Such a writer is not refused, and
  -- keeps waiting. If its answer was lost, the client does not know that it waits, but its claim is queued.
  if upgrade and nested and not (queued and redis.call('ZSCORE', line, claim)) then return 'deadlock' end
  if again or enters and not upgrade then
    if queued then redis.call('ZREM', line, claim) end
    local ends, raised = lives or now + claim:match(LEASE, TERMS_AT), ''
    local around = first:sub(1, CLIENT_END) == id:sub(1, CLIENT_END) and redis.call('HMGET', lock, first)[1]
    if around and around:match(WANTS, RECORD_TERMS_AT) == wants then
      if (redis.call('ZSCORE', deadlines, first) or ends) + 0 < ends then redis.call('ZADD', deadlines, ends, first) end
      raised = ' ' .. first
    end
    if enters then
      taken = taken + wants
      -- include: hold { tick = string.format('%.0f', clock) }
      if brief then
        for _, queue in ipairs(lines) do
          -- include: tell { lasts = lease }
        end
      end
    end
    return 'reentered ' .. token .. ' ' .. ends - now .. raised
  end
end
