-- pacing: what a reply says about the pace of the lock, and about the groups whose turn may come. From these, a client
-- estimates how many waiters of all groups are before one of its own (src/kinds/permits/turns.ts). Of many groups, some
-- are described, at equal distances in the order of turns.
--
-- Takes
--   pace?      string  see lua/shared/sample.lua
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
-- Gives
--   paced  string  "~<pace>~<waiters>;<groups>" and for each of some groups ";<number>,<start tag>,<jobs per unit>,<waiters>", or nothing
-- Constants
--   MOST_DESCRIBED = 12  groups, at most
paced = ''
if pace then
  local many = redis.call('ZCOUNT', turns, '-inf', string.format('(%.0f', IDLE))
  local alone = redis.call('ZCOUNT', queue, '-inf', '+inf')
  local told = { alone + redis.call('ZCOUNT', waiting, '-inf', '+inf'), many }
  local some = math.min(many, MOST_DESCRIBED)
  for i = 1, some do
    local at = math.floor((i - 0.5) * many / some)
    local found = redis.call('ZRANGE', turns, at, at, 'WITHSCORES')
    local claim = found[1]:sub(TOKEN_END + 1)
    -- include: group
    local known = redis.call('HMGET', shares, 'n' .. group, 'w' .. group)
    local number, rate = known[1] or 0, (known[2] or 1) / claim:match(WANTS, TERMS_AT)
    local waits = group == '' and alone or redis.call('ZCOUNT', waiting, number, number)
    told[#told + 1] = table.concat({ number, found[2], string.format('%.9g', rate), waits }, ',')
  end
  paced = '~' .. pace .. '~' .. table.concat(told, ';')
end
