-- number: the holds of a read-write lock have no numbers. Those of a semaphore may have them
-- (lua/permits/semaphore/number.lua).
--
-- Takes
--   claim   string   the claim of a new hold
--   token   string   its token
-- Gives
--   entry   string   the claim
--   answer  string   the token
entry, answer = claim, token
