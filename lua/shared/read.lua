-- read: reads everything that scripts need to know about the lock with one call. The values stay texts, as Redis
-- returns them.
--
-- Takes
--   lock          HASH    the lock
-- Gives
--   holder?       string  "<token> <from> <claim>" of the holder; a holder whose lease has lapsed is still here (lua/shared/holder.lua)
--   last?         string  the last ticket issued, or the last token that Redis knows of, µs
--   queuedUntil?  string  ms, the time until which the queue's keys live; absent: nobody is queued
--   keptUntil?    string  ms, the time at which the lock's own key expires
--   pace?         string  see lua/shared/sample.lua
--   holds?        string  set if the lock's ZSET of holds exists, because the owner has re-entered (lua/shared/live.lua)
local fields = redis.call('HMGET', lock, 'holder', 'clock', 'queued', 'keep', 'holds', 'pace')
holder, last, queuedUntil, keptUntil, holds = fields[1], fields[2], fields[3], fields[4], fields[5]
pace = fields[6]
