-- next: the first waiter of the group whose turn it is.
--
-- Takes
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
-- Gives
--   head?      string  its ticket and its claim; absent: no group is waiting, except groups that are full
local found = redis.call('ZRANGE', turns, 0, 0, 'WITHSCORES')
head = found[1] and found[2] + 0 < IDLE and found[1] or nil
