-- holder: the parts of `holder`, which is "<token> <from> <claim>".
--
-- The holder's lease is counted from `from`, and is as long as its claim says (lua/shared/ends.lua). A grant writes there what
-- Redis says of the time, and its claim as it came: no number has to become a text, which costs more than a command.
--
-- Takes
--   holder?  string  lua/shared/state.lua
-- Gives
--   token?   string  its fencing token, µs; absent, as the other, where nobody holds
--   hold?    string  the id of the holder's first hold, with which the granted claim begins
-- Constants
--   TOKEN_END = 16      where the token ends
--   FROM_AT = 18        where `from` stands
--   FROM_END = 33       where it ends
--   AFTER_FROM = 34     a space, and the claim
--   HELD_ID_AT = 35     the claim, which begins with the id
--   HELD_ID_END = 62    where the id ends
--   HELD_TERMS_AT = 63  the claim without its id (lua/shared/claim.lua)
if holder then
  token, hold = holder:sub(1, TOKEN_END), holder:sub(HELD_ID_AT, HELD_ID_END)
end
