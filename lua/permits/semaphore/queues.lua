-- queues: the keys of those who wait for a semaphore, which share its hash tag, and so its slot (lua/shared/all.lua says how that is seen).
--
-- They are asked for also where nobody is queued: a queue that begins on one node must not meet the remains of another.
--
-- Takes
--   lock    HASH  the lock
-- Gives
--   lines   list  the queue of the fair waiters: ZSET, by ticket
--   expiry  ZSET  waiters' deadlines, ms
lines = { lock .. ':queue' }
expiry = lock .. ':expiry'
--[[cluster
redis.call('EXISTS', expiry, unpack(lines))
--]]
