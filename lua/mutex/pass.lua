-- pass: record that a client has passed its lock to another of its own waiters.
--
-- In Redis, the hold stays the same, so it still excludes all others. The new holder's lease begins now. If the hold
-- already lasts longer than that lease, its end stays as it is. The new holder's token comes from the block of tokens
-- that the hold's client may issue on its own (lua/holder.lua). So the lock is safe even if this call comes
-- late, twice, or never (I1, I2, I5). If a call arrives after a later one, it records nothing, because its token is
-- smaller. Once the holder has re-entered, its client no longer passes the lock on, so this call records nothing.
-- PEXPIREAT comes first because a server at maxmemory refuses a script whose first write is HSET.
--
-- KEYS
--   lock        HASH    the lock
--   queue?      ZSET    fair waiters by ticket
--   deadlines?  ZSET    the ends of re-entered holds, and waiters' deadlines (lua/holder.lua)
-- ARGV
--   id        string  the hold
--   claim     string  the claim of the new holder, in which the id is replaced by the id of the hold
--   issued    string  the token of the new holder
--   lease     ms      the lease in the claim
-- Replies
--   recorded  ttl ms, 1 if a waiter is queued, else 0
--   gone      the hold no longer exists
-- Invariants: I1 I2 I5

-- functions
local s = readHolder(lock, nil, deadlines)
if s.holds then
  --[[cluster
  if not deadlines then return redis.error_reply('ERR non local key') end
  --]]
end
local ends = endOf(s, id)
if s.hold ~= id or not ends or ends < s.now then return 'gone' end

if not s.holds and issued + 0 > s.token + 0 then
  if ends < s.now + lease then ends = s.now + lease end
  keepUntil(s, ends)
  local last = issued + 0 > s.clock and issued or string.format('%.0f', s.clock)
  local from = string.format('%.0f', (ends - lease) * 1000)
  redis.call('PEXPIREAT', lock, s.keep)
  redis.call('HSET', lock, 'holder', issued .. ' ' .. from .. ' ' .. claim, 'clock', last, 'keep', s.keep)
end
return 'recorded ' .. ends - s.now .. ' ' .. (s.queued and 1 or 0)
