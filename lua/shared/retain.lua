-- retain: keeps a mutex taken after the release of a hold whose call has a `minHold`, until that has passed.
--
-- The hold is over for its caller. So its id changes: the first character becomes KEPT, which no id begins with. A
-- repeated release, a renewal and a re-entry find no hold with their id, and only the end of the lease, or a forced
-- release, ends this one. The character is kept in the claim, for `inspect`.
--
-- PEXPIREAT comes first because a server at maxmemory refuses a script whose first write is HSET.
--
-- Takes
--   till      ms      the end of the `minHold`
--   sampled?  string  see lua/shared/sample.lua
--   lock      HASH    the lock
--   queue     ZSET    fair waiters by ticket
--   deadlines ZSET    see lua/shared/live.lua
--   queued?   ms      the time until which the queue's keys live
--   now       ms      the server's time
--   clock     µs      the last ticket or token
--   token     string  the holder's token
-- Changes
--   holder    string  has the changed id, and its lease ends at `till`
--   hold      string  the changed id
--   ends      ms      equals `till`
--   holds     string  becomes absent
--   keep      ms      grows if the lock's key has to live longer
-- Constants
--   KEPT = '!'                    the first character of the id of a retained hold
--   MIN_HOLD_TERM = 'm%d+,%d+'    in a claim
-- include: prolong { deadline = till }
local first = hold:sub(1, 1)
ends, hold = till, KEPT .. hold:sub(2)
holder = holder:sub(1, AFTER_FROM) .. hold .. holder:sub(HELD_TERMS_AT):gsub(MIN_HOLD_TERM, '%0,' .. first, 1)
-- include: life { deadline = till }
redis.call('PEXPIREAT', lock, keep)
-- include: forget
redis.call('HSET', lock, 'holder', holder, 'clock', string.format('%.0f', clock), 'keep', keep)
if sampled then redis.call('HSET', lock, 'pace', sampled) end
if till < now + holder:match(WAITING, HELD_TERMS_AT) then
  -- include: tell { lasts = till - now }
end
