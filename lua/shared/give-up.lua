-- give-up: ends one hold.
--
-- If there is neither a hold nor a waiter left, no deadline is: those that remain are of dead waiters (I7).
-- ZREM, UNLINK and HDEL come first, because a server at maxmemory refuses a script whose first write is HSET.
--
-- Takes
--   id         string  the hold to end
--   record     string  see lua/shared/permits.lua
--   sampled?   string  see lua/shared/sample.lua
--   queued?    ms      the time until which the queue's keys live
--   lock       HASH    the lock
--   deadlines  ZSET    see lua/shared/live.lua
--   queue?      ZSET     only of a semaphore with groups: its waiters without a group
--   waiting?    ZSET     only of a semaphore with groups: see lua/permits/semaphore/groups/queues.lua
--   turns?      ZSET     only of a semaphore with groups: see lua/permits/semaphore/groups/settle.lua
--   shares?     HASH     only of a semaphore with groups: see lua/permits/semaphore/groups/settle.lua
-- Changes
--   taken      number  without the permits of this hold
taken = taken - record:match(WANTS, RECORD_TERMS_AT)
if taken == 0 and not queued then
  redis.call('UNLINK', deadlines)
else
  redis.call('ZREM', deadlines, id)
end
redis.call('HDEL', lock, id)
if sampled then
  redis.call('HSET', lock, 'taken', taken, 'pace', sampled)
else
  redis.call('HSET', lock, 'taken', taken)
end
-- include: disown
-- include: unnumber
