-- open: ends the holder. The lock is handed off to the next fair waiter. If there is none, the lock becomes free, and
-- unfair waiters are woken.
--
-- Takes
--   mine?       string   the prefix of ids that need no message (lua/shared/promote.lua)
--   sampled?    string   see lua/shared/sample.lua
--   lock        HASH     the lock
--   queue       ZSET     fair waiters by ticket
--   deadlines   ZSET     see lua/shared/live.lua
--   now         ms       the server's time
--   micros      µs       the server's time
--   stamp       string   the server's time, µs as text
-- Changes
--   holder      string   the next holder, if the lock was handed off
--   token       string   the next holder's token
--   ends        ms       the end of the next holder's lease
--   hold        string   the id of the next holder
--   holds       string   becomes absent
--   queued      ms       absent if the queue is empty afterwards
--   clock       µs       advances to the next holder's token
--   keep        ms       grows if the lock's key has to live longer
-- Gives
--   successor?  string   the id of the next holder
--   unfinished? boolean  the search for the next holder has to continue (lua/shared/promote.lua): the lock is neither handed off nor free
--   heard       number   how many subscribers received the message that the lock is free
heard = 0
if queued then
  -- include: promote { reason = 'handoff' }
end
-- include: forget
if not successor then
  redis.call('HDEL', lock, 'holder')
  if not unfinished then
    heard = tonumber(redis.pcall('PUBLISH', lock .. ':unlock', mine and 'free ' .. mine or 'free')) or 0
  end
end
