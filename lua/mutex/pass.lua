-- pass: record that a client has passed its lock to another of its own waiters.
--
-- The hold stays the same, and so does exclusion. The new holder's lease begins now, unless the hold has been prolonged
-- further in the meantime. Its token is from the holder's block (lua/shared/unreported.lua). So this call may come
-- late, twice, or never (I1, I2, I5). An older record never overwrites a newer one. Nothing is recorded once the holder
-- has re-entered, which ends such hand-offs.
-- PEXPIREAT comes first for the same reason as in lua/mutex/renew.lua.
--
-- KEYS
--   lock      HASH    the lock
-- ARGV
--   id        string  the hold
--   claim     string  the claim of the new holder, with the id of that hold
--   issued    string  the token of the new holder
--   lease     ms      the lease in the claim
-- Replies
--   recorded  ttl ms, 1 if a waiter is queued, else 0
--   gone      the hold no longer exists
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
