-- inspect: read the present state of a lock, for people and tools. If there are many holders, or the queue is long, one
-- call reads one page of them. Writes nothing.
--
-- KEYS
--   lock        HASH    the lock
--   deadlines   ZSET    the ends of holds, and waiters' deadlines (lua/README.md)
--   queue?      ZSET    fair waiters by ticket
--   readers?    ZSET    only of a read-write lock: the readers among them, who have a queue of their own
--   waiting?    ZSET    only of a semaphore: the waiters with a group (lua/groups.lua)
--   turns?      ZSET    only of a semaphore: the groups whose turn may come
--   shares?     HASH    only of a semaphore: what the groups have had
--   none?       string  only in a cluster: a key that never exists (lua/README.md)
-- ARGV
--   most     number  how many waiters of each queue, and how many holders, to read at most
--   after    string  the deadline and id of the last holder of the previous page; empty: this is the first page
--   ticket?  string  the ticket of the last waiter of the previous page; absent: this is the first page
--   behind?  string  the claim of that waiter; if present, only its queue is read
-- Replies
--   state    now µs, clock (the last ticket or token), {holder, deadline ms, …}, {record, …}, {claim, ticket, …}, {waiter, deadline ms, …}, {waiters read from each queue}, pace (`sample`)

--[[cluster
if not none then return redis.error_reply('ERR non local key') end
--]]
-- functions
local s, mark = readPermits(lock, queue, deadlines, readers)
if turns and mark and not s.queued then
  -- functions
  withGroups(s, waiting, turns, shares, mark)
end

-- The next page begins after the deadline of the last holder on the previous page, not after a count of holders. If a
-- holder on the previous page renews its lease, it moves to the end. With a count, the next page would then skip a
-- holder.
local ends, last = after:match('^(%d+) (.*)$')
local least = redis.call('ZCOUNT', deadlines, '-inf', '(' .. (ends or s.now))
if ends and tonumber(redis.call('ZSCORE', deadlines, last) or nil) == tonumber(ends) then
  least = redis.call('ZRANK', deadlines, last) + 1
end
local many = math.min(most + 0, redis.call('ZCOUNT', deadlines, '-inf', '(' .. WAITER) - least)
local live = many > 0 and redis.call('ZRANGE', deadlines, least, least + many - 1, 'WITHSCORES') or {}
local records = {}
for i = 1, #live, 2 do
  records[#records + 1] = redis.call('HMGET', lock, live[i])[1] or ''
end
local page, times, sizes, standing = {}, {}, {}, nil
for _, line in ipairs(behind and { lineOf(s, behind) } or { s.queue, s.otherLine }) do
  local ticketed, from = line == s.waiting, 0
  if ticketed and behind then
    -- functions
    from = pageFromGroup(s, ticket, behind)
  else
    from = pageFrom(line, ticket, behind)
  end
  sizes[#sizes + 1] = readPage(s, line, from, most, page, times, ticketed)
end
if s.turns then
  -- functions
  standing = standingOf(s, records, page)
end
return { 'state', string.format('%.0f', s.micros), string.format('%.0f', s.clock), live, records, page, times, sizes, s.pace or '', standing }
