-- keys: the lock's other keys, which share its hash tag, and so its slot; all of them are here (lua/shared/all.lua says how that is seen).
--
-- `queue` and `expiry` are asked for also where nobody is queued: a queue that begins on one node must not meet the remains of another.
--
-- Takes
--   lock    HASH    the lock
--   holds?  string  lua/shared/read.lua
-- Gives
--   queue   ZSET    fair waiters by ticket
--   expiry  ZSET    waiters' deadlines, ms
--   all     ZSET    lua/shared/all.lua
queue, expiry = lock .. ':queue', lock .. ':expiry'
--[[cluster
redis.call('EXISTS', queue, expiry)
--]]
-- include: all
