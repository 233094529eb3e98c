-- release: end one hold. If it was the holder's last, hand the lock to the next fair waiter, or leave it free.
--
-- A release ends only the hold whose id it has (I5). So a release that is late, repeated or from another client finds
-- no such hold, and changes nothing. If the lock has a single hold and no queue, its release does not read the time.
-- Writes that free memory come first, so a release works at maxmemory. If a hold's lease has lapsed but the hold is
-- still recorded, this call ends the hold. The reply need not say that the lease had lapsed, because the caller knows
-- its deadline. The holder's client may issue some tokens on its own (lua/holder.lua), so its release
-- reports the last of them.
--
-- KEYS
--   lock        HASH    the lock
--   queue?      ZSET    fair waiters by ticket
--   deadlines?  ZSET    the ends of re-entered holds, and waiters' deadlines (lua/holder.lua)
-- ARGV
--   id          string  the hold to end; if the next holder is a waiter of the same client, the reply contains its grant
--   used?       string  the last token that the client has issued on its own; absent, or '0': Redis knows of all tokens that the client has issued
--   minHold?    string  present: the hold's claim has a `minHold`. If it has not passed, the lock stays taken until then
-- Replies
--   released    the hold has ended
--   passed      id, token, ttl ms: a waiter of the same client is now the holder
--   unfinished  the hold has ended, but one call may pass over only so many waiters; lua/mutex/sweep.lua finds the next holder
--   ended       the hold did not exist
-- Invariants: I2 I3 I4 I5 I7

local fields = redis.call('HMGET', lock, 'holder', 'clock', 'queued', 'keep', 'holds', 'pace')
local holder, client = fields[1], id:sub(1, CLIENT_END)

-- Fast path: the usual case returns here, before the work that only rarer cases need.
if holder and not fields[3] and not fields[5] and not minHold and holder:sub(HELD_ID_AT, HELD_ID_END) == id then
  redis.call('HDEL', lock, 'holder')
  local last, keep = fields[2] or 0, fields[4] or 0
  if used and last + 0 < used + 0 then
    redis.call('HSET', lock, 'clock', used)
    last = used
  end
  if keep - last / 1000 > MEMORY * 1.1 + 1 then
    -- functions
    shorten(lock, keep + 0, last + 0)
  end
  redis.pcall('PUBLISH', lock .. ':unlock', 'free ' .. client)
  return 'released'
end

--[[cluster
if not deadlines then return redis.error_reply('ERR non local key') end
--]]
-- functions
local s = stateOf(lock, queue, deadlines, fields, readTime())
local successor, unfinished, retained
if s.hold == id and not s.holds and not minHold then
  -- The usual case of `drop` (lua/holder.lua), without its cost.
  if used and s.clock < used + 0 then s.clock = used + 0 end
  successor, unfinished = openLock(s, client, s.queued and sample(s, s.micros - s.token))
  if used and not successor then redis.call('HSET', lock, 'clock', string.format('%.0f', s.clock)) end
else
  -- functions
  local dropped
  dropped, successor, unfinished, retained = drop(s, id, used, client, minHold)
  if not dropped then return 'ended' end
end
if unfinished then return 'unfinished' end
if successor and successor:sub(1, CLIENT_END) == client then
  return 'passed ' .. successor .. ' ' .. s.token .. ' ' .. s.ends - s.now
end
if not (successor or retained or s.holds or s.queued) then
  -- functions
  shorten(lock, s.keep, s.clock)
end
return 'released'
