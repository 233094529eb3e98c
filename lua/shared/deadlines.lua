-- deadlines: the key of a semaphore's deadlines, which shares its hash tag, and so its slot (lua/shared/all.lua). Also where nobody holds
-- it is asked for: a grant makes it, after its first write.
--
-- Takes
--   lock       HASH  the lock
--   taken      number  lua/shared/permits.lua
-- Gives
--   deadlines  ZSET  holds by the end of their leases, ms
deadlines = lock .. ':deadlines'
--[[cluster
if taken > 0 then redis.call('EXISTS', lock, deadlines) else redis.call('EXISTS', deadlines) end
--]]
