-- all: the key of the ZSET with the holder's holds. It exists while the holder has more than one (lua/shared/live.lua),
-- and shares the lock's hash tag, and so its slot.
--
-- While a cluster moves a slot key by key, the keys of one lock may be on two nodes. Redis routes a script by its KEYS
-- only. A key whose name is built here may be on the other node, and a lookup on this node finds nothing, as if the key
-- did not exist. In a moving slot, Redis refuses a command with several keys if one of them is missing on this node. So
-- each script calls EXISTS with all keys that it will need before its first write. A refused script has changed
-- nothing. Its client repeats it (src/redis/refusals.ts) until all keys are on one node (I1, I3, I8).
--
-- Takes
--   lock    HASH    the lock
--   holds?  string  see lua/shared/read.lua
-- Gives
--   all     ZSET    holds, scored by their deadlines, ms
all = lock .. ':holds'
--[[cluster
if holds then redis.call('EXISTS', lock, all) end
--]]
