-- page: reads waiters of one queue, for people and tools (lua/shared/page.lua). The entries of waiters with groups have
-- the ticket inside.
--
-- Takes
--   queue      ZSET    the queue
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
--   most       number  how many waiters to read at most
--   behind?    string  the claim of the last waiter of the previous page; absent: this is the first page
--   ticket?    string  the ticket of that waiter
--   deadlines  ZSET    see lua/shared/live.lua
--   page       list    receives claim, ticket for each waiter read
--   times      list    receives waiter, deadline for each of them that has a deadline
-- Gives
--   size       number  how many waiters were read
local from = 0
if behind and queue == waiting then
  from = redis.call('ZRANK', queue, ticket .. behind)
  if not from then
    local claim = behind
    -- include: group
    from = redis.call('ZCOUNT', queue, '-inf', '(' .. (redis.call('HMGET', shares, 'n' .. group)[1] or 0)) - 1
  end
  from = from + 1
elseif behind then
  local place = redis.call('ZRANK', queue, behind)
  from = place and place + 1 or redis.call('ZCOUNT', queue, '-inf', '(' .. ticket)
end
local entries = redis.call('ZRANGE', queue, from, from + most - 1, 'WITHSCORES')
size = math.floor(#entries / 2)
for i = 1, #entries, 2 do
  local claim, at = entries[i], entries[i + 1]
  if queue == waiting then
    claim, at = claim:sub(TOKEN_END + 1), claim:sub(1, TOKEN_END)
  end
  page[#page + 1], page[#page + 2] = claim, at
  local waiter = claim:sub(1, ID_END)
  local deadline = (redis.call('ZSCORE', deadlines, waiter) or 0) - WAITER
  if deadline > 0 then
    times[#times + 1], times[#times + 2] = waiter, string.format('%.0f', deadline)
  end
end
