-- pacing: what a reply says about the pace of the lock, and how many readers wait: between two writers, they have a turn.
--
-- Takes
--   pace?  string  see lua/shared/sample.lua
--   lines  ZSETs   see lua/permits/read-write/queues.lua
-- Gives
--   paced  string  "~<pace>~<waiting readers>", or nothing
paced = pace and '~' .. pace .. '~' .. redis.call('ZCOUNT', lines[2], '-inf', '+inf') or ''
