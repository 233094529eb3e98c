-- pass: record that a client has passed its lock to another of its own waiters.
--
-- In Redis, the hold stays the same, so it still excludes all others. The new holder's lease begins now. If the hold
-- already lasts longer than that lease, its end stays as it is. The new holder's token comes from the block of tokens
-- that the hold's client may issue on its own (lua/shared/unreported.lua). So the lock is safe even if this call comes
-- late, twice, or never (I1, I2, I5). If a call arrives after a later one, it records nothing, because its token is
-- smaller. Once the holder has re-entered, its client no longer passes the lock on, so this call records nothing.
-- PEXPIREAT comes first because a server at maxmemory refuses a script whose first write is HSET.
--
-- KEYS
--   lock        HASH    the lock
--   deadlines?  ZSET    see lua/shared/live.lua
-- ARGV
--   id        string  the hold
--   claim     string  the claim of the new holder, in which the id is replaced by the id of the hold
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

if holds then
  -- include: keys { given = deadlines }
end
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
