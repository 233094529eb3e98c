-- inspect: the state of a lock as it stands, for people and tools; of many holders and of a long queue one page. Writes nothing.
--
-- KEYS
--   lock     HASH    the lock; its other keys follow from it (lua/shared/deadlines.lua, and queues.lua of its kind)
-- ARGV
--   most     number  how many waiters of each queue, and how many holders, at most
--   after    string  deadline and id of the last holder of the page before; empty where there was none
--   ticket?  string  of the last waiter of the page before, if there was one
--   behind?  string  its claim: then only its queue is read
-- Replies
--   state    now µs, {holder, deadline ms, …}, {record, …}, {claim, ticket, …}, {waiter, deadline ms, …}, {how many of each queue}
local id = ''
-- include: permits
-- include: deadlines

-- include: queues
-- include: time
-- Not by how many were read: a renewal moves a holder behind those that are still to be read.
local ends, last = after:match('^(%d+) (.*)$')
local least = redis.call('ZCOUNT', deadlines, '-inf', '(' .. (ends or now))
if ends and redis.call('ZSCORE', deadlines, last) == ends then least = redis.call('ZRANK', deadlines, last) + 1 end
local live = redis.call('ZRANGE', deadlines, least, least + most - 1, 'WITHSCORES')
local records = {}
for i = 1, #live, 2 do
  records[#records + 1] = redis.call('HMGET', lock, live[i])[1] or ''
end
local page, times, sizes = {}, {}, {}
if behind then
  -- include: line { claim = behind }
  lines = { line }
end
for _, queue in ipairs(lines) do
  -- include: page
  sizes[#sizes + 1] = size
end
return { 'state', string.format('%.0f', micros), live, records, page, times, sizes }
