-- deadlines: the key of a semaphore's deadlines. It shares the lock's hash tag, and so its slot (lua/shared/all.lua
-- explains EXISTS). EXISTS checks the key even if there is no holder, because a grant creates it after the script's
-- first write.
--
-- Takes
--   lock       HASH    the lock
--   taken      number  see lua/shared/permits.lua
-- Gives
--   deadlines  ZSET    holds, scored by the end of their leases, ms
deadlines = lock .. ':deadlines'
--[[cluster
if taken > 0 then redis.call('EXISTS', lock, deadlines) else redis.call('EXISTS', deadlines) end
--]]
