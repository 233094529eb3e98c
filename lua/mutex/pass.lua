-- pass: a client has passed its lock on to a waiter of its own, and records who holds now.
--
-- The hold stays, and with it the exclusion: the new holder's lease counts from here (unless it has been prolonged meanwhile),
-- and its token is of the holder's block (lua/shared/unreported.lua). So this may come late, twice, or never (I1, I2, I5); an older record
-- never overwrites a newer one, and none is taken once the holder has re-entered, which ends such hand-offs.
-- PEXPIREAT comes first for the same reason as in lua/mutex/renew.lua.
--
-- KEYS
--   lock      HASH    the lock
-- ARGV
--   id        string  the hold
--   claim     string  who holds now, under that hold's id
--   issued    string  its token
--   lease     ms      as in the claim
-- Replies
--   recorded  ttl ms, 1 if somebody is queued
--   gone      there is no such hold any more
-- Invariants: I1 I2 I5
-- include: state
-- include: holder
-- include: ends
-- include: time

-- include: all
-- include: live
if hold ~= id or not lives or lives < now then return 'gone' end

if not holds and tonumber(issued) > tonumber(token) then
  ends = math.max(ends, now + lease)
  -- include: life { deadline = ends }
  local last = tonumber(issued) > clock and issued or string.format('%.0f', clock)
  local from = string.format('%.0f', (ends - lease) * 1000)
  redis.call('PEXPIREAT', lock, keep)
  redis.call('HSET', lock, 'holder', issued .. ' ' .. from .. ' ' .. claim, 'clock', last, 'keep', keep)
end
return 'recorded ' .. ends - now .. ' ' .. (queued and 1 or 0)
