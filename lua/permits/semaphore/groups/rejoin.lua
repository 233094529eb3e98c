-- rejoin: puts waiters back into their queues, with their old tickets. A waiter that is still there keeps its place. Their
-- groups are settled in any case, so a heartbeat restores whatever Redis has lost.
--
-- Takes
--   joins      list    ticket, claim for each waiter
--   lock       HASH    the lock
--   deadlines  ZSET    see lua/shared/live.lua
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
--   now        ms      the server's time
-- Changes
--   grouped    boolean  see lua/permits/semaphore/groups/group-number.lua
local names, weights = {}, {}
for i = 1, #joins, 2 do
  local ticket, claim = joins[i], joins[i + 1]
  -- include: group
  if group == '' then
    redis.call('ZADD', queue, 'NX', ticket, claim)
  else
    local field = 't' .. claim:sub(1, ID_END)
    -- include: group-number
    local known = redis.call('HMGET', shares, field)[1]
    if not known then redis.call('HSET', shares, field, ticket) end
    redis.call('ZADD', waiting, number, (known or ticket) .. claim)
  end
  if not weights[group] then names[#names + 1] = group end
  weights[group] = weight
end
for _, group in ipairs(names) do
  local known = redis.call('HMGET', shares, 'w' .. group)[1]
  -- include: settle { adds = 0, refund = false, given = known and '' or weights[group] }
end
