-- first: the first waiter of a group.
--
-- Takes
--   group      string  the group
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
-- Gives
--   leader?    string  the claim of that waiter; absent: nobody of the group waits
--   turn?      string  its ticket
if group == '' then
  local found = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')
  leader, turn = found[1], found[2]
else
  local entry = redis.call('ZRANGEBYLEX', waiting, '[' .. group .. ';', '(' .. group .. '<', 'LIMIT', 0, 1)[1]
  if entry then
    leader, turn = entry:sub(#group + 18), entry:sub(#group + 2, #group + 17)
  end
end
