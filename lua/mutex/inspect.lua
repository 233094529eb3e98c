-- inspect: read the present state of a lock, for people and tools. If the queue is long, one call reads one page of it.
-- Writes nothing.
--
-- KEYS
--   lock        HASH    the lock
--   queue?      ZSET    fair waiters by ticket
--   deadlines?  ZSET    see lua/shared/live.lua
-- ARGV
--   most?    number  how many waiters to read at most; absent: read only the holder
--   ticket?  string  the ticket of the last waiter of the previous page; absent: this is the first page
--   behind?  string  the claim of that waiter
-- Replies
--   state    now µs, holder, live holds, {claim, ticket, …}, {waiter, deadline ms, …}, pace (lua/shared/sample.lua), clock (the last ticket or token)
-- include: time

local lockState = redis.call('HMGET', lock, 'holder', 'holds', 'pace', 'clock')
local holder, holds = lockState[1], lockState[2]
-- include: keys { given = deadlines }
-- include: shown
local live = holds and redis.call('ZCOUNT', deadlines, now, '(' .. WAITER)
local page, times = {}, {}
if most then
  -- include: page
end
return { 'state', string.format('%.0f', micros), holder, live, page, times, lockState[3], lockState[4] }
