-- inspect: the whole state of a lock as it stands, for people and tools. Writes nothing.
--
-- KEYS
--   lock     HASH    the lock
--   queue    ZSET    fair waiters by ticket
--   expiry   ZSET    waiters' deadlines, ms
-- ARGV
--   queued?  string  '1': with the queue; absent: only the holder
-- Replies
--   state    now µs, {owner, label, token, until ms, hold, holds}, {entry, ticket, …}, {waiter, deadline ms, …}
-- include: time

readTime()
local lockState = redis.call('HMGET', lock, 'owner', 'label', 'token', 'until', 'hold', 'holds')
return {
  'state', string.format('%.0f', micros), lockState,
  queued and redis.call('ZRANGE', queue, 0, -1, 'WITHSCORES') or {},
  queued and redis.call('ZRANGE', expiry, 0, -1, 'WITHSCORES') or {},
}
