-- re-enter: grants the lock again, at once, to an owner with a name that already holds it, regardless of waiters. An
-- owner that reads or writes may read again, and may continue to read after it has ended writing. An owner that writes
-- may write again. An owner that only reads would wait for itself if it waited to write, so that request is refused as
-- a deadlock.
--
-- The owner of a caller without a name is the id of its hold, which only its own client knows. So only calls of that
-- client re-enter such a hold.
--
-- A re-entry has a lease of its own. The re-entry may come from the client of the first hold, want the same (to read,
-- or to write), and ask for a longer lease. Then the first hold is prolonged to the end of that lease, because the
-- re-entry runs inside the first hold (src/lease/renewal.ts).
--
-- Takes
--   claim      string  the caller's claim
--   id         string  its id
--   wants      string  the permits that it wants
--   record?    string  see lua/shared/permits.lua; present: the id already holds
--   lock       HASH    the lock
--   deadlines  ZSET    see lua/shared/deadlines.lua
--   now        ms      the server's time
--   clock      µs      the last ticket or token
--   queued?    ms      the time until which the queues' keys live
-- Changes
--   taken      number  includes what the claim wants
--   keep       ms      grows if the lock's key has to live longer
-- Replies
--   reentered  token, ttl ms: the owner already holds the lock. If an id follows, that hold lasts at least as long
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
  -- `again`: the reply to an earlier request of this call was lost, so the request is repeated. It gets the same hold.
  local again = record and first ~= id and record:sub(1, TOKEN_END) == token
  local lives = again and tonumber(redis.call('ZSCORE', deadlines, id) or nil)
  local enters = token and not record
  local upgrade = enters and wants ~= '1' and sum < ALL_PERMITS
  -- If a writer was queued before its owner began to read elsewhere, the writer keeps waiting.
  if upgrade and not (queued and redis.call('ZSCORE', line, claim)) then return 'deadlock' end
  if lives or enters and not upgrade then
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
    end
    return 'reentered ' .. token .. ' ' .. ends - now .. raised
  end
end
