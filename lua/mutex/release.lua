-- release: end one hold. If it was the holder's last, hand the lock to the next fair waiter, or open it.
--
-- Only the hold's own id ends it (I5): a late, repeated or foreign release finds no such hold and changes nothing.
-- The only hold of a lock without a queue needs no clock. It frees before it fills, so it works at maxmemory.
-- A hold that is still recorded is ended whether or not its lease has lapsed: its caller knows its own deadline.
-- A holder may issue some tokens by itself (lua/shared/unreported.lua), and says here which was the last.
--
-- KEYS
--   lock        HASH    the lock; its other keys follow from it (lua/shared/keys.lua)
-- ARGV
--   id          string  the hold to end; a waiter of the same client is told of its grant by the reply
--   used?       string  the last token that the client has issued by itself; absent: none after the one that Redis knows of
-- Replies
--   released    how many heard that the lock is free. Absent: nobody, or it is not free: it went on, or another hold of its owner lives
--   passed      id, token, ttl ms: a waiter of the same client is now the holder
--   unfinished  the hold has ended; who follows is found by lua/mutex/sweep.lua, because so many waiters were passed over
--   ended       there was no such hold
-- Invariants: I2 I3 I4 I5 I7
-- include: read

local client = id:sub(1, CLIENT_END)

-- The usual case stands before everything that it does not need.
if holder and not queuedUntil and not holds and holder:sub(HELD_ID_AT, HELD_ID_END) == id then
  redis.call('HDEL', lock, 'holder')
  if used and tonumber(last or 0) < tonumber(used) then redis.call('HSET', lock, 'clock', used) end
  local told = redis.pcall('PUBLISH', lock .. ':unlock', 'free ' .. client)
  return told == 0 and 'released' or 'released ' .. (tonumber(told) or 0)
end

-- include: numbers
-- include: keys
-- include: holder
-- include: time
local ends
-- include: drop { mine = client }
if not dropped then return 'ended' end
if successor and successor:sub(1, CLIENT_END) == client then
  return 'passed ' .. successor .. ' ' .. token .. ' ' .. ends - now
end
if unfinished then return 'unfinished' end
return heard == 0 and 'released' or 'released ' .. heard
