-- ends: until when the holder's lease lasts; of several, the last.
--
-- Takes
--   holder?  string  lua/shared/state.lua
-- Gives
--   ends?    ms      by the server's clock; absent where nobody holds
if holder then
  ends = math.floor(holder:sub(FROM_AT, FROM_END) / 1000) + holder:match(LEASE, HELD_TERMS_AT)
end
