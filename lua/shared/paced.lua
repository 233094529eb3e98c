-- paced: what a reply says about the pace of the lock. It follows the clock of the lock, so that a reply without it has
-- no more bytes than before.
--
-- Takes
--   pace?  string  see lua/shared/sample.lua
-- Gives
--   paced  string  "~<pace>", or nothing
paced = pace and '~' .. pace or ''
