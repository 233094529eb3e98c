-- holder: the parts of `holder`, which is "<token> <from> <claim>".
--
-- The holder's lease begins at `from` and is as long as its claim says (lua/shared/ends.lua). A grant stores Redis's
-- own text of the time as `from`, and the claim as it was received. So no number has to be formatted, which would cost
-- more than a Redis command.
--
-- Takes
--   holder?  string  see lua/shared/state.lua
-- Gives
--   token?   string  the holder's fencing token, µs; absent: there is no holder
--   hold?    string  the id of the holder's first hold, which is in the granted claim; absent: there is no holder
-- Constants
--   TOKEN_END = 16      the last character of the token
--   FROM_AT = 18        the first character of `from`
--   FROM_END = 33       the last character of `from`
--   AFTER_FROM = 34     the space before the claim
--   HELD_ID_AT = 35     the first character of the claim, and so of the id
--   HELD_ID_END = 62    the last character of the id
--   HELD_TERMS_AT = 63  the first character of the claim after its id (lua/shared/claim.lua)
if holder then
  token, hold = holder:sub(1, TOKEN_END), holder:sub(HELD_ID_AT, HELD_ID_END)
end
