-- quit: removes a waiter from its queue.
--
-- Takes
--   claim      string   the waiter's claim
--   lock       HASH    the lock
--   deadlines  ZSET    see lua/shared/live.lua
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
-- Gives
--   gone       boolean  the waiter was queued
-- include: time
-- include: group
local ticket = group == '' or redis.call('HMGET', shares, 't' .. claim:sub(1, ID_END))[1]
gone = false
if ticket then
  -- include: pop
end
-- include: settle { adds = 0, refund = false, given = '' }
