-- mark: keeps the mark of a semaphore with groups (lua/permits/semaphore/groups/mode.lua), or removes it when the last
-- group is gone: no group has a hold or a waiter, and none has had more than its share while others wait or hold. It also
-- forgets groups that have been idle for MEMORY.
--
-- Takes
--   taken      number   what all holds take together
--   queued?    ms       the time until which the queue's keys live
--   clock      µs       the last ticket or token
--   keep       ms       the time at which the lock's key expires
--   by?        string   the client that released
--   mine?      string   see lua/permits/semaphore/groups/told.lua
--   lock       HASH    the lock
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
--   now        ms      the server's time
-- Changes
--   grouped    boolean  the semaphore is marked as one with groups
-- Gives
--   passable   boolean  a caller that does not queue may try to take what is free
-- Constants
--   MOST_FORGOTTEN = 10  idle groups that one call forgets, at most
local from = redis.call('ZCOUNT', turns, '-inf', string.format('(%.0f', IDLE))
local idle = redis.call('ZRANGE', turns, from, from + MOST_FORGOTTEN - 1, 'WITHSCORES')
for i = 1, #idle, 2 do
  if idle[i + 1] - IDLE > now - MEMORY then break end
  local group = idle[i]:sub(2)
  redis.call('ZREM', turns, idle[i])
  local number = redis.call('HMGET', shares, 'n' .. group)[1] or nil
  -- include: first
  if not leader and not redis.call('HMGET', lock, ':' .. group)[1] then
    redis.call('HDEL', shares, 'f' .. group, 'w' .. group, 'l' .. group, 'n' .. group)
  end
end
local busy = queued or taken > 0
local tags = redis.call('HMGET', shares, 'v', 'top', 's')
local ahead = busy and (tags[2] or 0) + 0 > (tags[1] or 0) + 0
local held = redis.call('HMGET', lock, 'grouped')[1]
grouped = clock ~= NO_CLOCK and (held or ahead or redis.call('EXISTS', waiting) == 1)
if grouped then
  redis.call('HSET', lock, 'queued', MARK .. (queued or ''))
  redis.call('PEXPIREAT', waiting, keep)
else
  if tags[3] then redis.call('ZREM', turns, tags[3]) end
  redis.call('HDEL', shares, 's', 'f')
  if tags[1] and not busy then redis.call('HSET', shares, 'v', string.format('%.17g', math.max(tags[1] + 0, (tags[2] or 0) + 0))) end
  if queued then
    redis.call('HSET', lock, 'queued', queued)
  else
    redis.call('HDEL', lock, 'queued')
  end
end
local expiry = math.max(queued or 0, now + MEMORY)
redis.call('PEXPIREAT', turns, expiry)
redis.call('PEXPIREAT', shares, expiry)
passable = not queued
if queued and (by or not mine) then
  -- include: next
  passable = not head
end
