-- read: everything that the scripts need to know about the lock, by one call, as Redis has it.
--
-- Takes
--   lock          HASH    the lock
-- Gives
--   holder?       string  "<token> <from> <claim>": who holds the lock, or held it until its lease lapsed (lua/shared/holder.lua)
--   last?         string  the last ticket issued, or the last token that Redis knows of, µs
--   queuedUntil?  string  ms until which the queue's keys are kept; absent: nobody is queued
--   keptUntil?    string  ms at which the lock's own key expires
--   holds?        string  set while the holder's holds stand in the lock's ZSET of holds, because its owner has re-entered (lua/shared/live.lua)
local fields = redis.call('HMGET', lock, 'holder', 'clock', 'queued', 'keep', 'holds')
holder, last, queuedUntil, keptUntil, holds = fields[1], fields[2], fields[3], fields[4], fields[5]
