-- trim: removes deadlines that have passed. If thousands of deadlines have passed, one call removes as many as the
-- server can remove quickly, and later calls remove the others.
--
-- ZREMRANGEBYSCORE runs even if no deadline has passed. The reason is that a server at maxmemory refuses a script whose
-- first write is HSET or ZADD. If the first write is ZREMRANGEBYSCORE, the server accepts the whole script.
--
-- Takes
--   from       number  WAITER: of waiters; 0: of holds
--   deadlines  ZSET    see lua/shared/live.lua
--   now        ms      the server's time
-- Constants
--   MOST_TRIMMED = 500     deadlines removed by one call, at most
--   LAST_TRIMMED_AT = 499  the rank of the last deadline that one call removes
local till = '(' .. from + now
if redis.call('ZCOUNT', deadlines, '-inf', '+inf') > MOST_TRIMMED then
  local rank = LAST_TRIMMED_AT + redis.call('ZCOUNT', deadlines, '-inf', '(' .. from)
  local far = redis.call('ZRANGE', deadlines, rank, rank, 'WITHSCORES')[2]
  if far and far - now < from then till = far end
end
redis.call('ZREMRANGEBYSCORE', deadlines, from, till)
