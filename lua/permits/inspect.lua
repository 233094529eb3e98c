-- inspect: read the present state of a lock, for people and tools. If there are many holders, or the queue is long, one
-- call reads one page of them. Writes nothing.
--
-- KEYS
--   lock        HASH    the lock
--   deadlines   ZSET    see lua/shared/live.lua
--   queue?      ZSET    fair waiters by ticket
--   readers?    ZSET    only of a read-write lock: the readers among them, who have a queue of their own
--   waiting?    ZSET    only of a semaphore with groups: the waiters of the groups (lua/permits/semaphore/groups/queues.lua)
--   shares?     HASH    only of a semaphore with groups: what the groups have had (lua/permits/semaphore/groups/settle.lua)
--   none?       string  only in a cluster: see lua/shared/settled.lua
-- ARGV
--   most     number  how many waiters of each queue, and how many holders, to read at most
--   after    string  the deadline and id of the last holder of the previous page; empty: this is the first page
--   ticket?  string  the ticket of the last waiter of the previous page; absent: this is the first page
--   behind?  string  the claim of that waiter; if present, only its queue is read
-- Replies
--   state    now µs, clock (the last ticket or token), {holder, deadline ms, …}, {record, …}, {claim, ticket, …}, {waiter, deadline ms, …}, {waiters read from each queue}, pace (lua/shared/sample.lua)
local id = ''
-- include: permits
-- include: mode { call = {} }

-- include: queues
-- include: time
-- The next page begins after the deadline of the last holder on the previous page, not after a count of holders. If a
-- holder on the previous page renews its lease, it moves to the end. With a count, the next page would then skip a
-- holder.
local ends, last = after:match('^(%d+) (.*)$')
local least = redis.call('ZCOUNT', deadlines, '-inf', '(' .. (ends or now))
if ends and tonumber(redis.call('ZSCORE', deadlines, last) or nil) == tonumber(ends) then least = redis.call('ZRANK', deadlines, last) + 1 end
local many = math.min(most + 0, redis.call('ZCOUNT', deadlines, '-inf', '(' .. WAITER) - least)
local live = many > 0 and redis.call('ZRANGE', deadlines, least, least + many - 1, 'WITHSCORES') or {}
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
-- include: standing
return { 'state', string.format('%.0f', micros), string.format('%.0f', clock), live, records, page, times, sizes, pace or '', standing }
