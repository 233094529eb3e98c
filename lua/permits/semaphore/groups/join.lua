-- join: puts a waiter into its queue. If the waiter is there already, it keeps its ticket (I5).
--
-- Takes
--   id         string   the waiter's id
--   claim      string   its claim
--   ttl        ms       its own expiry
--   lock       HASH    the lock
--   deadlines  ZSET    see lua/shared/live.lua
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
--   now        ms      the server's time
-- Changes
--   grouped    boolean  see lua/permits/semaphore/groups/group-number.lua
--   ticket     string   the waiter's ticket
-- Gives
--   joined     boolean  the waiter was not in the queue
-- include: group
if group ~= '' then redis.call('HSET', shares, 'l' .. group, limit == '' and NO_LIMIT or limit) end
local known
if group == '' then
  joined = redis.call('ZADD', queue, 'NX', ticket, claim) == 1
  if not joined then known = string.format('%.0f', redis.call('ZSCORE', queue, claim)) end
else
  known = redis.call('HMGET', shares, 't' .. id)[1]
  joined = not known
  if joined then redis.call('HSET', shares, 't' .. id, ticket) end
  -- include: group-number
  redis.call('ZADD', waiting, number, (known or ticket) .. claim)
end
if known then
  ticket = known
  -- The waiter is alive, so it must not be passed over below.
  redis.call('ZADD', deadlines, WAITER + now + ttl, id)
end
-- include: settle { adds = 0, refund = false, given = weight }
