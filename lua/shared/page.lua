-- page: reads waiters of one queue, for people and tools. From a long queue, it reads one page: the waiters after a
-- given waiter.
--
-- Takes
--   queue    ZSET    the queue
--   most     number  how many waiters to read at most
--   behind?  string  the claim of the last waiter of the previous page; absent: this is the first page
--   ticket?  string  the ticket of that waiter
--   deadlines ZSET   see lua/shared/live.lua
--   page     list    receives claim, ticket for each waiter read
--   times    list    receives waiter, deadline for each of them that has a deadline
-- Gives
--   size     number  how many waiters were read
local place = behind and redis.call('ZRANK', queue, behind)
local from = place and place + 1 or behind and redis.call('ZCOUNT', queue, '-inf', '(' .. ticket) or 0
local entries = redis.call('ZRANGE', queue, from, from + most - 1, 'WITHSCORES')
size = math.floor(#entries / 2)
for i = 1, #entries, 2 do
  page[#page + 1], page[#page + 2] = entries[i], entries[i + 1]
  local waiter = entries[i]:sub(1, ID_END)
  local deadline = (redis.call('ZSCORE', deadlines, waiter) or 0) - WAITER
  if deadline > 0 then
    times[#times + 1], times[#times + 2] = waiter, string.format('%.0f', deadline)
  end
end
