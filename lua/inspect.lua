-- inspect: the whole state of a lock as it stands, for people and tools. Writes nothing.
--
-- KEYS
--   lock     HASH    the lock
--   queue    ZSET    fair waiters by ticket
--   expiry   ZSET    waiters' deadlines, ms
-- ARGV
--   queued?  string  '1': with the queue; absent: only the holder
-- Replies
--   state    now µs, holder, holds, {claim, ticket, …}, {waiter, deadline ms, …}
-- include: time

local lockState = redis.call('HMGET', lock, 'holder', 'holds')
return {
  'state', string.format('%.0f', micros), lockState[1], lockState[2],
  queued and redis.call('ZRANGE', queue, 0, -1, 'WITHSCORES') or {},
  queued and redis.call('ZRANGE', expiry, 0, -1, 'WITHSCORES') or {},
}
