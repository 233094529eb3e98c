-- whole: makes sure, before the script writes anything, that all keys of the waiters are on this node. Some may be on
-- another node while a cluster moves the lock's slot. Redis then refuses EXISTS, and the script ends
-- (lua/shared/all.lua explains why).
--
-- EXISTS is called even if nobody is queued on this node, because an old queue may be on the other node. Without this
-- call, a new queue could begin on this node.
--
-- A script may empty a queue, or the ZSET of deadlines, and then read it again. If the slot is moving away, Redis would
-- look for the emptied key on the other node, and the script would fail after some of its writes (I1). The first call
-- of EXISTS prevents this. It names a key that never exists, and Redis refuses it while the slot is moving away. So the
-- script ends before it has written anything.
--
-- Takes
--   lock    HASH  the lock
--   lines   list  the queues of the fair waiters
--   expiry  ZSET  waiters' deadlines
--[[cluster
redis.call('EXISTS', lock .. ':?')
redis.call('EXISTS', expiry, unpack(lines))
--]]
