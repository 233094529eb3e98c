-- owner: what an owner with a name holds, as recorded by lua/permits/read-write/own.lua.
--
-- Takes
--   claim   string  the claim of a call with that owner
--   lock    HASH    the lock
-- Gives
--   owner   string  the owner's name
--   known?  string  the record; absent: the owner holds nothing
local size, names = claim:match(NAMES_BEHIND, TERMS_AT)
owner = names:sub(1, size)
known = redis.call('HMGET', lock, OWNED_BY .. owner)[1]
