-- page: waiters of one queue, for people and tools; of a long one those that stand behind the one given.
--
-- Takes
--   queue    ZSET    the queue
--   most     number  how many waiters at most
--   behind?  string  the claim of the last waiter of the page before, if there was one
--   ticket?  string  its ticket
--   expiry   ZSET    waiters' deadlines
--   page     list    claim, ticket, for each waiter that was read
--   times    list    waiter, deadline, for each of them that has one
-- Gives
--   size     number  how many were read
local place = behind and redis.call('ZRANK', queue, behind)
local from = place and place + 1 or behind and redis.call('ZCOUNT', queue, '-inf', '(' .. ticket) or 0
local entries = redis.call('ZRANGE', queue, from, from + most - 1, 'WITHSCORES')
size = #entries / 2
for i = 1, #entries, 2 do
  page[#page + 1], page[#page + 2] = entries[i], entries[i + 1]
  local waiter = entries[i]:sub(1, ID_END)
  local deadline = redis.call('ZSCORE', expiry, waiter)
  if deadline then
    times[#times + 1], times[#times + 2] = waiter, deadline
  end
end
