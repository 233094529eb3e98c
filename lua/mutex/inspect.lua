-- inspect: read the present state of a lock, for people and tools. If the queue is long, one call reads one page of it.
-- Writes nothing.
--
-- KEYS
--   lock        HASH    the lock
--   queue?      ZSET    fair waiters by ticket
--   deadlines?  ZSET    the ends of re-entered holds, and waiters' deadlines (lua/holder.lua)
-- ARGV
--   most?    number  how many waiters to read at most; absent: read only the holder
--   ticket?  string  the ticket of the last waiter of the previous page; absent: this is the first page
--   behind?  string  the claim of that waiter
-- Replies
--   state    now µs, holder, live holds, {claim, ticket, …}, {waiter, deadline ms, …}, pace (`sample`, lua/lock.lua), clock (the last ticket or token)

-- functions
local s = readHolder(lock, queue, deadlines)
--[[cluster
if not deadlines then return redis.error_reply('ERR non local key') end
--]]
if s.holder and s.holds then
  -- functions
  show(s)
end
local live = s.holds and redis.call('ZCOUNT', deadlines, s.now, '(' .. WAITER)
local page, times = {}, {}
if most then
  -- functions
  readPage(s, queue, pageFrom(queue, ticket, behind), most, page, times, false)
end
return { 'state', string.format('%.0f', s.micros), s.holder, live, page, times, s.pace, s.clock ~= NO_CLOCK and string.format('%.0f', s.clock) }
