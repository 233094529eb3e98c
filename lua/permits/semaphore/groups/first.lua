-- first: the first waiter of a group.
--
-- Takes
--   group      string  the group
--   number?    string  its number (lua/permits/semaphore/groups/group-number.lua); absent: none of its callers has queued
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
-- Gives
--   leader?    string  the claim of that waiter; absent: nobody of the group waits
--   turn?      string  its ticket
if group == '' then
  local found = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')
  leader, turn = found[1], found[1] and string.format('%.0f', found[2])
elseif number then
  local at = redis.call('ZCOUNT', waiting, '-inf', '(' .. number)
  local found = redis.call('ZRANGE', waiting, at, at, 'WITHSCORES')
  if found[1] and found[2] + 0 == number + 0 then
    leader, turn = found[1]:sub(TOKEN_END + 1), found[1]:sub(1, TOKEN_END)
  end
end
