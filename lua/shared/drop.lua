-- drop: ends one hold; with the last live hold of the holder, the holder.
--
-- ZREM and HDEL come first, because a server at maxmemory refuses a script whose first write is HSET.
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
  dropped = redis.call('ZREM', all, id) == 1
  latest = tonumber(redis.call('ZRANGE', all, -1, -1, 'WITHSCORES')[2] or nil)
end
if dropped and latest and latest >= now then
  -- include: prolong { deadline = latest }
  redis.call('HSET', lock, 'holder', holder)
elseif dropped then
  if used then clock = math.max(clock, tonumber(used)) end
  -- include: open
  if used and not successor then redis.call('HSET', lock, 'clock', string.format('%.0f', clock)) end
end
