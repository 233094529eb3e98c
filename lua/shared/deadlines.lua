-- deadlines: the key of a ZSET with the deadlines of all holds. It shares the lock's hash tag, and so its slot. While a
-- cluster moves the slot, the key may be on another node. Redis then refuses EXISTS, and the script ends
-- (lua/shared/all.lua explains why).
--
-- EXISTS is called even if there is no holder. A grant would create the key, but only after the script's first write.
-- It would then be too late to end the script.
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
