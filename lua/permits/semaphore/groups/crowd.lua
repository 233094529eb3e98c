-- crowd: how many callers of the caller's group are in a queue, for a caller that must not join a long one. A caller
-- without a group counts all callers.
--
-- lua/shared/crowd.lua says why only some of many waiters are looked at.
--
-- Takes
--   most      number   with fewer waiters, the caller may join; no exact number is needed then
--   id        string   the caller's id
--   claim     string   the caller's claim
--   queue     ZSET     the queue
--   lines     ZSETs    see lua/permits/semaphore/groups/queues.lua
--   shares    HASH     see lua/permits/semaphore/groups/settle.lua
--   deadlines ZSET     see lua/shared/live.lua
--   now       ms       the server's time
--   micros    µs       the server's time
-- Gives
--   crowd     number   how many callers are queued; -1 if this caller is one of them, because it keeps its place
-- Constants
--   MOST_LOOKED_AT = 32  waiters
-- include: group
local mates = group ~= ''
local ofGroups = queue == lines[2]
local number = mates and redis.call('HMGET', shares, 'n' .. group)[1]
crowd = 0
if mates and ofGroups and number then
  crowd = redis.call('ZCOUNT', queue, number, number)
elseif not mates then
  crowd = redis.call('ZCOUNT', queue, '-inf', '+inf')
end
if crowd > 0 and crowd >= most then
  local before = mates and redis.call('ZCOUNT', queue, '-inf', '(' .. number) or 0
  local from = before + (crowd > MOST_LOOKED_AT and micros % (crowd - MOST_LOOKED_AT + 1) or 0)
  local many = math.min(crowd, MOST_LOOKED_AT)
  local some = redis.call('ZRANGE', queue, from, from + many - 1, 'WITHSCORES')
  local living = 0
  for i = 1, #some, 2 do
    local lease, ttl
    local text, turn = some[i], some[i + 1]
    if ofGroups then
      text, turn = text:sub(TOKEN_END + 1), text:sub(1, TOKEN_END)
    end
    -- include: alive { claim = text, ticket = turn, missed = false }
    if alive then living = living + 1 end
  end
  crowd = math.floor(crowd * living / (#some / 2) + 0.5)
  local queued = ofGroups and redis.call('HMGET', shares, 't' .. id)[1] or redis.call('ZSCORE', queue, claim)
  if queued then crowd = -1 end
end
