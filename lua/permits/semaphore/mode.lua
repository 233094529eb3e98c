-- mode: ends the script if the semaphore has groups. The client then calls the script that can deal with them
-- (lua/permits/semaphore/groups/mode.lua). This costs a semaphore without groups no command, because the mark of groups
-- is in a field that each script reads anyway.
--
-- Takes
--   mark?    string  see lua/shared/permits.lua
--   queued?  ms      the time until which the queue's keys live
-- Replies
--   grouped  nothing has changed, because the semaphore has groups
if mark and not queued then return 'grouped' end
