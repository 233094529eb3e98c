-- drop: ends one hold. If it is the holder's last live hold, the holder ends with it.
--
-- ZREM, UNLINK and HDEL come first, because a server at maxmemory refuses a script whose first write is HSET.
--
-- ZREM is not used for the last of several holds. lua/shared/forget.lua removes the key of the ZSET together with that
-- hold. If ZREM had removed that hold before, the ZSET would be empty, and so Redis would have removed the key already.
-- While a cluster moves the slot, Redis looks for a removed key on the other node. So the command in forget.lua would
-- fail and end the script, and the lock would keep a holder that no call can end.
--
-- Takes
--   id          string   the hold to end
--   used?       string   µs: the last token that its client has issued on its own
--   mine?       string   the prefix of ids that need no message (lua/shared/promote.lua)
--   minHold?    string   present: the hold's claim may have a `minHold`; if it has not passed, the lock stays taken
--   pace?       string   see lua/shared/sample.lua
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
--   holds       string   absent if the holder has ended, otherwise without this hold
--   queued      ms       absent if the queue is empty afterwards
--   clock       µs       advances to the last token used or granted
--   keep        ms       grows if the lock's key has to live longer
-- Gives
--   dropped     boolean  the hold existed
--   retained?   boolean  the hold has ended for its caller, but the lock stays taken (lua/shared/retain.lua)
--   successor?  string   the id of the new holder
--   unfinished? boolean  the search for the next holder has to continue (lua/shared/promote.lua)
--   heard       number   how many subscribers received the message that the lock is free
heard = 0
dropped = hold == id
local latest
if holds then
  dropped = (redis.call('ZSCORE', deadlines, id) or WAITER) + 0 < WAITER
  local many = redis.call('ZCOUNT', deadlines, '-inf', '(' .. WAITER)
  local last = redis.call('ZRANGE', deadlines, math.max(0, many - 2), many - 1, 'WITHSCORES')
  latest = tonumber(last[last[#last - 1] == id and #last - 2 or #last] or nil)
end
if dropped and latest and latest >= now then
  redis.call('ZREM', deadlines, id)
  -- include: unlist
  -- include: prolong { deadline = latest }
  redis.call('HSET', lock, 'holder', holder, 'holds', holds)
  if latest < now + holder:match(WAITING, HELD_TERMS_AT) then
    -- include: tell { lasts = latest - now }
  end
elseif dropped then
  if used then clock = math.max(clock, tonumber(used)) end
  -- A re-entry, too, may be the last hold of a grant with a `minHold`.
  local least = (minHold or holds) and holder:match(MIN_HOLD, HELD_TERMS_AT)
  -- If the lock's clock was ahead of the time, the token is later than the grant.
  local till = least and math.min(math.floor(token / 1000), now) + least
  retained = till and till > now
  local sampled
  if queued then
    -- include: sample { spent = (retained and till * 1000 or micros) - token }
    sampled = renewed
  end
  if retained then
    -- include: retain
  else
    -- include: open
    if used and not successor then redis.call('HSET', lock, 'clock', string.format('%.0f', clock)) end
  end
end
