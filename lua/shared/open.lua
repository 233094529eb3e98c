-- open: the end of a holder: the lock goes to the next fair waiter, or is opened and the unfair ones are woken.
--
-- Takes
--   mine?       string   ids that need no message (lua/shared/promote.lua)
--   lock        HASH     the lock
--   queue       ZSET     fair waiters by ticket
--   expiry      ZSET     waiters' deadlines
--   all         ZSET     lua/shared/all.lua
--   now         ms       the server's time
--   micros      µs       the same
--   stamp       string   the same
-- Changes
--   holder      string   the next one, once the lock has gone on
--   token       string   its token
--   ends        ms       the end of its lease
--   hold        string   its id
--   holds       string   absent from here on
--   queued      ms       absent where nobody was left
--   clock       µs       up to the token
--   keep        ms       the lock's key may live longer
-- Gives
--   successor?  string   the id of the new holder
--   unfinished? boolean  who follows is still to be found (lua/shared/promote.lua): the lock is neither handed on nor opened
--   heard       number   how many were told that the lock is free
-- include: forget
heard = 0
if queued then
  -- include: promote { reason = 'handoff' }
end
if not successor then
  redis.call('HDEL', lock, 'holder')
  if not unfinished then
    heard = tonumber(redis.pcall('PUBLISH', lock .. ':unlock', mine and 'free ' .. mine or 'free')) or 0
  end
end
