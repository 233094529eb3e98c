-- keys: the lock's other keys. They share its hash tag, and so its slot. While a cluster moves the slot, some keys may
-- be on another node. Redis then refuses EXISTS, and the script ends (lua/shared/all.lua explains why).
--
-- EXISTS is called with `queue` and `expiry` even if nobody is queued on this node, because an old queue may be on the
-- other node. Without this call, a new queue could begin on this node.
--
-- Takes
--   lock    HASH    the lock
--   holds?  string  see lua/shared/read.lua
-- Gives
--   queue   ZSET    fair waiters by ticket
--   expiry  ZSET    waiters' deadlines, ms
--   all     ZSET    see lua/shared/all.lua
queue, expiry = lock .. ':queue', lock .. ':expiry'
--[[cluster
redis.call('EXISTS', queue, expiry)
--]]
-- include: all
