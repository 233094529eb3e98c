-- all: the key of a ZSET with all holds of the lock's holder. The ZSET exists only while the holder has more than one
-- hold (lua/shared/live.lua). The key shares the lock's hash tag, and so its slot.
--
-- While a cluster moves a slot key by key, the keys of one lock may be on two nodes. Redis chooses the node of a script
-- by its KEYS only, but scripts also build the names of other keys. Such a key may be on the other node. If the script
-- looked it up on this node, it would find nothing, as if the key did not exist. In a moving slot, Redis refuses a
-- command with several keys if one of them is missing on this node. So before its first write, each script calls EXISTS
-- with all keys that it will need. If Redis refuses EXISTS, the script ends, and has changed nothing. Its client
-- repeats it (src/redis/refusals.ts) until all keys are on one node (I1, I3, I8).
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
