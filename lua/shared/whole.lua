-- whole: lets a script run only if all keys of the waiters are on this node and stay there until the script ends
-- (lua/shared/all.lua explains EXISTS).
--
-- EXISTS checks these keys even if nobody is queued. Otherwise a new queue could begin on one node while an old one is
-- still on the other.
--
-- A queue, or the ZSET of deadlines, may become empty in the middle of a script that reads it again. If the slot is
-- moving away, Redis would look for the missing key on the other node, and the script would fail after some of its
-- writes (I1). So the script first looks for a key that never exists. While the slot is moving away, Redis refuses that
-- command, so the script ends before it has written anything.
--
-- Takes
--   lock    HASH  the lock
--   lines   list  the queues of the fair waiters
--   expiry  ZSET  waiters' deadlines
--[[cluster
redis.call('EXISTS', lock .. ':?')
redis.call('EXISTS', expiry, unpack(lines))
--]]
