-- mark: whether a caller that does not queue may take what is free: if nobody waits. Only a semaphore with groups has
-- waiters whom others pass (lua/permits/semaphore/groups/mark.lua).
--
-- Takes
--   queued?   ms       the time until which the queue's keys live
-- Gives
--   passable  boolean  such a caller may try
passable = not queued
