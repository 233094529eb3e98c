-- numbers: what has been read, as numbers. Apart from the reading, because not every path needs them, and each costs as much as
-- a field more.
--
-- Takes
--   last?         string  lua/shared/read.lua
--   queuedUntil?  string  the same
--   keptUntil?    string  the same
-- Gives
--   clock         µs      the last ticket issued, or the last token that Redis knows of
--   queued?       ms      until which the queue's keys are kept; absent: nobody is queued
--   keep          ms      at which the lock's own key expires, or 0
-- Constants
--   NO_CLOCK = 0          `clock`: the key is new or was lost
clock, keep = (last or 0) + 0, (keptUntil or 0) + 0
if queuedUntil then queued = queuedUntil + 0 end
