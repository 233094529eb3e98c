-- queues: the keys of those who wait for a semaphore, which share its hash tag, and so its slot (lua/shared/all.lua says how that is seen).
--
-- They are asked for also where nobody is queued: a queue that begins on one node must not meet the remains of another.
--
-- A queue, or the deadlines of holds, may become empty in the middle of a script, which then looks for it again. As it is not here any
-- more, a slot that is moving away would have it on the other node, and the script would end there, after some of its writes (I1). So a
-- key that there never is is asked for first: while the slot moves away, that is refused, and the script as a whole.
--
-- Takes
--   lock    HASH  the lock
-- Gives
--   lines   list  the queue of the fair waiters: ZSET, by ticket
--   expiry  ZSET  waiters' deadlines, ms
lines = { lock .. ':queue' }
expiry = lock .. ':expiry'
--[[cluster
redis.call('EXISTS', lock .. ':?')
redis.call('EXISTS', expiry, unpack(lines))
--]]
