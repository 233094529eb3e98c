-- undo: takes back the permits of a waiter that was chosen and then not admitted.
--
-- Takes
--   claim   string  the waiter's claim
-- Changes
--   taken   number  without the permits that the claim wants
taken = taken - claim:match(WANTS, TERMS_AT)
