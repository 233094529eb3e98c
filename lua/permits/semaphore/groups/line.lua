-- line: the queue of a claim.
--
-- Takes
--   claim  string  the claim
--   lines  ZSETs   see lua/permits/semaphore/groups/queues.lua
-- Gives
--   line   ZSET    one of them
line = claim:find(GROUPED, TERMS_AT) and lines[2] or lines[1]
