-- keys: the lock's other keys. They share its hash tag, and so its slot. In a cluster, EXISTS makes sure that all of
-- them are on this node (lua/shared/all.lua explains how).
--
-- EXISTS checks `queue` and `expiry` even if nobody is queued. Otherwise a new queue could begin on one node while an
-- old one is still on the other.
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
