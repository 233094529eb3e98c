-- prolong: writes into `holder` that its lease lasts until a deadline, earlier or later than so far.
--
-- Takes
--   deadline  ms      by the server's clock
--   token     string  the holder's
-- Changes
--   holder    string  has another `from`
local granted = holder:match(LEASE, HELD_TERMS_AT)
holder = token .. ' ' .. string.format('%.0f', (deadline - granted) * 1000) .. holder:sub(AFTER_FROM)
