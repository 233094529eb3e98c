-- prolong: changes `holder` so that its lease ends at a given deadline, which may be earlier or later than before. The
-- lease begins at the time `from` in `holder`, and its length is in the claim and does not change
-- (lua/shared/holder.lua). So `from` becomes the deadline minus that length.
--
-- Takes
--   deadline  ms      by the server's clock
--   token     string  the holder's token
-- Changes
--   holder    string  has another `from`
local granted = holder:match(LEASE, HELD_TERMS_AT)
holder = token .. ' ' .. string.format('%.0f', (deadline - granted) * 1000) .. holder:sub(AFTER_FROM)
