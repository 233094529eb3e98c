-- queues: the keys of those who wait for a read-write lock, which share its hash tag, and so its slot (lua/shared/all.lua says how that is
-- seen). Readers are admitted together, so they have a queue of their own, and nobody has to look for them among the writers.
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
--   lines   list  the queues of the writers and of the readers: ZSETs, by ticket
--   expiry  ZSET  deadlines of both, ms
lines = { lock .. ':queue', lock .. ':readers' }
expiry = lock .. ':expiry'
--[[cluster
redis.call('EXISTS', lock .. ':?')
redis.call('EXISTS', expiry, unpack(lines))
--]]
