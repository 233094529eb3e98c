-- line: the queue of a claim.
--
-- Takes
--   claim    string  the claim of a reader or a writer
--   lines    ZSETs  see lua/permits/read-write/queues.lua
-- Gives
--   line     ZSET    one of those queues
line = claim:match(WANTS, TERMS_AT) == '1' and lines[2] or lines[1]
