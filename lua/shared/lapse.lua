-- lapse: ends the holds whose leases have lapsed (I1), oldest deadline first.
--
-- If the deadlines were lost, the ends of the leases are unknown. Then all holds end, as they do if the lock's own key
-- is lost (I8). If the lock's own key was lost, the deadlines that remain belong to no hold, and are removed.
--
-- Takes
--   lock       HASH    the lock
--   deadlines  ZSET    see lua/shared/live.lua
--   queue?      ZSET     only of a semaphore with groups: its waiters without a group
--   waiting?    ZSET     only of a semaphore with groups: see lua/permits/semaphore/groups/queues.lua
--   turns?      ZSET     only of a semaphore with groups: see lua/permits/semaphore/groups/settle.lua
--   shares?     HASH     only of a semaphore with groups: see lua/permits/semaphore/groups/settle.lua
--   now        ms      the server's time
--   clock      µs      the last ticket or token
--   queued?    ms      the time until which the queue's keys live
--   mark?      string  see lua/shared/permits.lua; of a semaphore with groups, it also says that there are groups
--   keep       ms      the time at which the lock's key expires
-- Changes
--   taken      number  without the permits of the ended holds
-- Gives
--   more       boolean  the limit of one call was reached; there may be more lapsed holds
--   holds      number   the recorded holds, without the ended ones
--   word       string   the first word of the messages to waiters admitted now: 'expiry' if a lease had lapsed, else 'handoff'
-- Constants
--   MOST_LAPSED = 250  holds ended by one call, at most
more, word, holds = false, 'handoff', 0
if clock == NO_CLOCK and redis.call('ZCOUNT', deadlines, '-inf', '(' .. WAITER) > 0 then
  redis.call('ZREMRANGEBYSCORE', deadlines, '-inf', '(' .. WAITER)
end
if taken > 0 then
  local many = redis.call('ZCOUNT', deadlines, '-inf', '(' .. now)
  holds = redis.call('ZCOUNT', deadlines, '-inf', '(' .. WAITER)
  if many > 0 then
    word = 'expiry'
    local over = redis.call('ZRANGE', deadlines, 0, math.min(many, MOST_LAPSED) - 1)
    local records = redis.call('HMGET', lock, (table.unpack or unpack)(over))
    for i = 1, #over do
      local record = records[i]
      if record then
        taken = taken - record:match(WANTS, RECORD_TERMS_AT)
        -- include: disown
        -- include: unnumber
      end
    end
    holds = holds - #over
    -- As in lua/shared/give-up.lua.
    if taken == 0 and not queued then
      redis.call('UNLINK', deadlines)
    else
      redis.call('ZREM', deadlines, (table.unpack or unpack)(over))
    end
    redis.call('HDEL', lock, (table.unpack or unpack)(over))
    redis.call('HSET', lock, 'taken', taken)
    more = many > MOST_LAPSED
  elseif holds == 0 then
    taken = 0
    redis.call('UNLINK', lock)
    redis.call('HSET', lock, 'clock', string.format('%.0f', clock), 'keep', keep)
    if mark or queued then redis.call('HSET', lock, 'queued', mark or queued) end
    redis.call('PEXPIREAT', lock, keep)
  end
end
