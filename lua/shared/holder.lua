-- holder: the parts of `holder`, which is "<token> <until> <claim>".
--
-- Takes
--   holder?  string  include/state.lua
-- Gives
--   token?   string  its fencing token, µs; absent, as the others, where nobody holds
--   ends?    ms      by the server's clock: the end of the last of the holder's leases
--   hold?    string  the id of the holder's first hold, with which the granted claim begins
-- Constants
--   TOKEN_END = 16      where the token ends
--   UNTIL_AT = 18       where the end of the lease stands
--   UNTIL_END = 30      where that ends
--   AFTER_UNTIL = 31    a space, and the claim
--   HELD_ID_AT = 32     the claim, which begins with the id
--   HELD_ID_END = 59    where the id ends
--   HELD_TERMS_AT = 60  the claim without its id (include/claim.lua)
if holder then
  token, ends = string.sub(holder, 1, TOKEN_END), tonumber(string.sub(holder, UNTIL_AT, UNTIL_END))
  hold = string.sub(holder, HELD_ID_AT, HELD_ID_END)
end
