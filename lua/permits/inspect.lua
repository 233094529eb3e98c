-- inspect: the state of a semaphore as it stands, for people and tools; of many holders and of a long queue one page. Writes nothing.
--
-- KEYS
--   lock     HASH    the lock; its other keys follow from it (lua/shared/keys.lua, lua/shared/deadlines.lua)
-- ARGV
--   most     number  how many waiters, and how many holders, at most
--   from     number  how many holders have been read before
--   ticket?  string  of the last waiter of the page before, if there was one
--   behind?  string  its claim
-- Replies
--   state    now µs, {holder, deadline ms, …}, {record, …}, {claim, ticket, …}, {waiter, deadline ms, …}
local id = ''
-- include: permits
-- include: deadlines

-- include: keys { holds = nil }
-- include: time
local least = redis.call('ZCOUNT', deadlines, '-inf', '(' .. now) + from
local live = redis.call('ZRANGE', deadlines, least, least + most - 1, 'WITHSCORES')
local records = {}
for i = 1, #live, 2 do
  records[#records + 1] = redis.call('HMGET', lock, live[i])[1] or ''
end
local place = behind and redis.call('ZRANK', queue, behind)
local start = place and place + 1 or behind and redis.call('ZCOUNT', queue, '-inf', '(' .. ticket) or 0
local page, times = redis.call('ZRANGE', queue, start, start + most - 1, 'WITHSCORES'), {}
for i = 1, #page, 2 do
  local waiter = page[i]:sub(1, ID_END)
  local deadline = redis.call('ZSCORE', expiry, waiter)
  if deadline then
    times[#times + 1] = waiter
    times[#times + 1] = deadline
  end
end
return { 'state', string.format('%.0f', micros), live, records, page, times }
