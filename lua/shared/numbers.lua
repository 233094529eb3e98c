-- numbers: converts to numbers what lua/shared/read.lua has read. This is a separate step because not every path needs
-- the numbers, and each conversion costs as much as reading one more field.
--
-- Takes
--   last?         string  see lua/shared/read.lua
--   queuedUntil?  string  see lua/shared/read.lua
--   keptUntil?    string  see lua/shared/read.lua
-- Gives
--   clock         µs      the last ticket issued, or the last token that Redis knows of
--   queued?       ms      the time until which the queue's keys live; absent: nobody is queued
--   keep          ms      the time at which the lock's own key expires, or 0
-- Constants
--   NO_CLOCK = 0          the value of `clock` if the lock's key is new or was lost
clock, keep = (last or 0) + 0, (keptUntil or 0) + 0
if queuedUntil then queued = queuedUntil + 0 end
