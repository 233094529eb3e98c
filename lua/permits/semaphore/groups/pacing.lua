-- pacing: what a reply says about the pace of the lock, and about some of the groups whose turn may come. From these, a
-- client estimates how many waiters of all groups are before one of its own (src/kinds/permits/turns.ts). Many groups
-- would cost too much, so those are described that follow each other from a place which changes from call to call.
--
-- Takes
--   pace?      string  see lua/shared/sample.lua
--   micros     µs      the server's time
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
-- Gives
--   paced  string  "~<pace>~<waiters>" and for each of some groups ";<number>,<start tag>,<jobs per unit>,<waiters>", or nothing
-- Constants
--   MOST_DESCRIBED = 6  groups, at most
paced = ''
if pace then
  local alone = redis.call('ZCOUNT', queue, '-inf', '+inf')
  local told = { alone + redis.call('ZCOUNT', waiting, '-inf', '+inf') }
  local many = redis.call('ZCOUNT', turns, '-inf', string.format('(%.0f', IDLE))
  local from = many > MOST_DESCRIBED and micros % (many - MOST_DESCRIBED + 1) or 0
  local some = many > 0 and redis.call('ZRANGE', turns, from, math.min(many, from + MOST_DESCRIBED) - 1, 'WITHSCORES') or {}
  local fields, names = {}, {}
  for i = 1, #some, 2 do
    local claim = some[i]:sub(TOKEN_END + 1)
    -- include: group
    names[i] = group
    fields[i], fields[i + 1] = 'n' .. group, 'w' .. group
  end
  local known = #some > 0 and redis.call('HMGET', shares, (table.unpack or unpack)(fields))
  for i = 1, #some, 2 do
    local number, rate = known[i] or 0, (known[i + 1] or 1) / some[i]:sub(TOKEN_END + 1):match(WANTS, TERMS_AT)
    local waits = names[i] == '' and alone or redis.call('ZCOUNT', waiting, number, number)
    told[#told + 1] = table.concat({ number, some[i + 1], string.format('%.9g', rate), waits }, ',')
  end
  paced = '~' .. pace .. '~' .. table.concat(told, ';')
end
