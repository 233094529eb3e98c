-- owner: what an owner with a name holds, as lua/permits/read-write/own.lua notes it.
--
-- Takes
--   claim   string  of a call with that owner
--   lock    HASH    the lock
-- Gives
--   owner   string  its name
--   known?  string  what is noted; absent: it holds nothing
local size, names = claim:match(NAMES_BEHIND, TERMS_AT)
owner = names:sub(1, size)
known = redis.call('HMGET', lock, OWNED_BY .. owner)[1]
