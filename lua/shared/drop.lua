-- drop: ends one hold; with the last live hold of the holder, the holder.
--
-- ZREM, UNLINK and HDEL come first, because a server at maxmemory refuses a script whose first write is HSET. The last of several holds
-- stays in their key until lua/shared/forget.lua removes that: a script that empties a key does not find it again while a slot of a
-- cluster moves, and would end there, with a holder that nobody can end any more.
--
-- Takes
--   id          string   the hold that ends
--   used?       string   µs: the last token that its client has issued by itself
--   mine?       string   ids that need no message (lua/shared/promote.lua)
--   lock        HASH     the lock
--   queue       ZSET     fair waiters by ticket
--   expiry      ZSET     waiters' deadlines
--   all         ZSET     lua/shared/all.lua
--   now         ms       the server's time
--   micros      µs       the same
--   stamp       string   the same
-- Changes
--   holder      string   the next one, once the lock has gone on
--   token       string   its token
--   ends        ms       the end of its lease
--   hold        string   its id
--   holds       string   absent as soon as the holder has ended
--   queued      ms       absent where nobody was left
--   clock       µs       up to what was used or is granted
--   keep        ms       the lock's key may live longer
-- Gives
--   dropped     boolean  there was such a hold
--   successor?  string   the id of the new holder
--   unfinished? boolean  who follows is still to be found (lua/shared/promote.lua)
--   heard       number   how many were told that the lock is free
heard = 0
dropped = hold == id
local latest
if holds then
  dropped = redis.call('ZSCORE', all, id) and true or false
  local last = redis.call('ZRANGE', all, -2, -1, 'WITHSCORES')
  latest = tonumber(last[last[#last - 1] == id and #last - 2 or #last] or nil)
end
if dropped and latest and latest >= now then
  redis.call('ZREM', all, id)
  -- include: prolong { deadline = latest }
  redis.call('HSET', lock, 'holder', holder)
elseif dropped then
  if used then clock = math.max(clock, tonumber(used)) end
  -- include: open
  if used and not successor then redis.call('HSET', lock, 'clock', string.format('%.0f', clock)) end
end
