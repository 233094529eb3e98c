-- release: end one hold. If it was the holder's last, hand the lock to the next fair waiter, or leave it free.
--
-- A release ends only the hold whose id it has (I5). So a release that is late, repeated or from another client finds
-- no such hold, and changes nothing. If the lock has a single hold and no queue, its release does not read the time.
-- Writes that free memory come first, so a release works at maxmemory. If a hold's lease has lapsed but the hold is
-- still recorded, this call ends the hold. The reply need not say that the lease had lapsed, because the caller knows
-- its deadline. The holder's client may issue some tokens on its own (lua/shared/unreported.lua), so its release
-- reports the last of them.
--
-- KEYS
--   lock        HASH    the lock
--   queue?      ZSET    fair waiters by ticket
--   deadlines?  ZSET    see lua/shared/live.lua
-- ARGV
--   id          string  the hold to end; if the next holder is a waiter of the same client, the reply contains its grant
--   used?       string  the last token that the client has issued on its own; absent, or '0': Redis knows of all tokens that the client has issued
--   minHold?    string  present: the hold's claim has a `minHold`. If it has not passed, the lock stays taken until then
-- Replies
--   released    how many subscribers received the message that the lock is free. Absent: no subscriber received it, or it was not sent, because the lock was handed off or its owner still has another hold
--   passed      id, token, ttl ms: a waiter of the same client is now the holder
--   unfinished  the hold has ended, but one call may pass over only so many waiters; lua/mutex/sweep.lua finds the next holder
--   ended       the hold did not exist
-- Invariants: I2 I3 I4 I5 I7
-- include: read

local client = id:sub(1, CLIENT_END)

-- Fast path: the usual case returns here, before the work that only rarer cases need.
if holder and not queuedUntil and not holds and not minHold and holder:sub(HELD_ID_AT, HELD_ID_END) == id then
  redis.call('HDEL', lock, 'holder')
  if used and tonumber(last or 0) < tonumber(used) then redis.call('HSET', lock, 'clock', used) end
  -- include: shorten { keep = keptUntil or 0, clock = used or last or 0 }
  local told = redis.pcall('PUBLISH', lock .. ':unlock', 'free ' .. client)
  return told == 0 and 'released' or 'released ' .. (tonumber(told) or 0)
end

-- include: numbers
-- include: keys { given = deadlines }
-- include: holder
-- include: time
local ends
-- include: drop { mine = client }
if not dropped then return 'ended' end
if not (holds or queued or successor or retained) then
  -- include: shorten
end
if successor and successor:sub(1, CLIENT_END) == client then
  return 'passed ' .. successor .. ' ' .. token .. ' ' .. ends - now
end
if unfinished then return 'unfinished' end
return heard == 0 and 'released' or 'released ' .. heard
