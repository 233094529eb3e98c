-- re-enter: an owner with a name that holds the lock is granted it again at once, whoever waits. It reads while it reads or writes, and
-- may go on reading when it has ended writing. It writes while it writes. While it only reads, a request to write would wait for
-- the end of its own reading, so it is refused for good.
--
-- The owner of a hold without a name is known to its own client only, by its id. A re-entry has a lease of its own. One that is longer
-- than that of the first hold, of the same client and for the same purpose, raises that, too: the caller around it has to last as long
-- (src/lease/renewal.ts).
--
-- Takes
--   claim      string  who asks
--   id         string  its id
--   wants      string  what it wants
--   record?    string  lua/shared/permits.lua: the id holds already
--   lock       HASH    the lock
--   deadlines  ZSET    lua/shared/deadlines.lua
--   now        ms      the server's time
--   clock      µs      the last ticket or token
--   queued?    ms      until when the queues' keys live
-- Changes
--   taken      number  with what it wants
--   keep       ms      the lock's key may live longer
-- Replies
--   reentered  token, ttl ms: the owner holds it already. With an id: that hold lasts as long
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
  -- Asked again, because the answer was lost: the same one.
  local again = record and first ~= id and record:sub(1, TOKEN_END) == token
  local lives = again and tonumber(redis.call('ZSCORE', deadlines, id) or nil)
  local enters = token and not record
  local upgrade = enters and wants ~= '1' and sum < ALL_PERMITS
  -- One that waited before its owner began to read elsewhere goes on waiting.
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
