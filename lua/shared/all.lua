-- all: the key of the holder's holds, while it has more than one (lua/shared/live.lua). It shares the lock's hash tag, and so its slot.
--
-- While a slot of a cluster moves key by key, one key of a lock may be on another node. A key that KEYS names brings the script to its node;
-- one that is made here is found missing, and so taken for one that there never was. A command with several keys is refused wherever
-- one of them is missing in such a slot: so a script asks for the keys that it will need, before it writes anything, and is refused
-- as a whole. Its client repeats it (src/redis/refusals.ts) until they are in one place (I1, I3, I8).
--
-- Takes
--   lock    HASH    the lock
--   holds?  string  lua/shared/read.lua
-- Gives
--   all     ZSET    holds by their deadlines, ms
all = lock .. ':holds'
--[[cluster
if holds then redis.call('EXISTS', lock, all) end
--]]
