-- line: in which queue a claim stands.
--
-- Takes
--   claim    string  of a reader or a writer
--   lines    list    lua/permits/read-write/queues.lua
-- Gives
--   line     ZSET    one of them
line = claim:match(WANTS, TERMS_AT) == '1' and lines[2] or lines[1]
