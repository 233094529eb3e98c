-- whole: a script runs only where all keys of those who wait are on this node (lua/shared/all.lua says how that is seen), and stay here
-- until it ends.
--
-- They are asked for also where nobody is queued: a queue that begins on one node must not meet the remains of another.
--
-- A queue, or the deadlines of holds, may become empty in the middle of a script, which then looks for it again. As it is not here any
-- more, a slot that is moving away would have it on the other node, and the script would end there, after some of its writes (I1). So a
-- key that there never is is asked for first: while the slot moves away, that is refused, and the script as a whole.
--
-- Takes
--   lock    HASH  the lock
--   lines   list  the queues of the fair waiters
--   expiry  ZSET  waiters' deadlines
--[[cluster
redis.call('EXISTS', lock .. ':?')
redis.call('EXISTS', expiry, unpack(lines))
--]]
