-- position: the place of a waiter among the waiters of its group, and when the turns of this group come. A caller that
-- does not wait gets the place that it would have. The place in the order of all grants depends on the turns of all
-- groups, so only `inspect` knows it, and a client estimates it (src/kinds/permits/turns.ts).
--
-- Takes
--   claim      string  the waiter's claim
--   lock       HASH    the lock
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
-- Gives
--   position   string  "<place>,<number of the group>,<start tag of its next job>,<jobs per unit>,<groups>", where the last is how many groups have a turn before; if the group is full, "<place>,<limit>"
-- include: group
local known = redis.call('HMGET', shares, 't' .. claim:sub(1, ID_END), 'n' .. group, 's' .. group, 'w' .. group, 'f' .. group, 'v')
local number, wants = known[2] or 0, claim:match(WANTS, TERMS_AT)
local before
if group == '' then
  before = redis.call('ZRANK', queue, claim) or redis.call('ZCOUNT', queue, '-inf', '+inf')
else
  local rank = known[1] and redis.call('ZRANK', waiting, known[1] .. claim)
  before = rank and rank - redis.call('ZCOUNT', waiting, '-inf', '(' .. number) or redis.call('ZCOUNT', waiting, number, number)
end
position = before + 1
local start = known[3] and redis.call('ZSCORE', turns, known[3])
if not start and limit ~= '' and (redis.call('HMGET', lock, ':' .. group)[1] or 0) + wants > limit + 0 then
  position = position .. ',' .. limit
else
  local rate = (known[4] or 1) / wants
  start = start or string.format('%.17g', math.max((known[5] or 0) + 0, (known[6] or 0) + 0))
  local groups = redis.call('ZCOUNT', turns, '-inf', string.format('%.17g', start + before / rate))
  if known[3] then groups = groups - 1 end
  position = position .. ',' .. number .. ',' .. start .. ',' .. string.format('%.9g', rate) .. ',' .. groups
end
