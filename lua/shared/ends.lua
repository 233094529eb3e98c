-- ends: the end of the holder's lease; if it has several leases, the latest end.
--
-- Takes
--   holder?  string  see lua/shared/state.lua
-- Gives
--   ends?    ms      by the server's clock; absent: there is no holder
if holder then
  ends = math.floor(holder:sub(FROM_AT, FROM_END) / 1000) + holder:match(LEASE, HELD_TERMS_AT)
end
