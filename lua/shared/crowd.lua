-- crowd: how many callers are in a queue, for a caller that must not join a long one.
--
-- A waiter of a dead process stays in the queue until a grant passes it over. It does not count. To look at all waiters
-- would cost too much if many calls are turned away. So the script looks at some of them, from a place that changes from
-- call to call, and reckons that of the others the same part is alive.
--
-- Takes
--   most      number   with fewer waiters, the caller may join; no exact number is needed then
--   claim     string   the caller's claim
--   queue     ZSET     the queue
--   deadlines ZSET     see lua/shared/live.lua
--   now       ms       the server's time
--   micros    µs       the server's time
-- Gives
--   crowd     number   how many callers are queued; -1 if this caller is one of them, because it keeps its place
-- Constants
--   MOST_LOOKED_AT = 32  waiters
crowd = redis.call('ZCOUNT', queue, '-inf', '+inf')
if crowd > 0 and crowd >= most then
  local from = crowd > MOST_LOOKED_AT and micros % (crowd - MOST_LOOKED_AT + 1) or 0
  local some = redis.call('ZRANGE', queue, from, from + MOST_LOOKED_AT - 1, 'WITHSCORES')
  local living = 0
  for i = 1, #some, 2 do
    local lease, ttl
    -- include: alive { claim = some[i], ticket = some[i + 1], missed = false }
    if alive then living = living + 1 end
  end
  crowd = math.floor(crowd * living / (#some / 2) + 0.5)
  if redis.call('ZSCORE', queue, claim) then crowd = -1 end
end
