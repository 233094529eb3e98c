-- force-release: take the lock from whoever holds it, and hand it on.
--
-- One call, however fast the lock changes hands. The lock remembers the latest request, so that one that is repeated, because its
-- answer was lost, does not take the lock from the next holder as well (I5).
-- Each hold's client is told at once, by its inbox, that the hold may be gone; it asks before it believes (I8). A holder with more
-- holds than that learns of the others by renewing them.
--
-- KEYS
--   lock        HASH    the lock; its other keys follow from it (lua/shared/keys.lua)
-- ARGV
--   request     string  unguessable; of this request, and no other
--   only?       string  the id of the holder that loses the lock; absent: whoever holds it
-- Replies
--   released    the holder has lost the lock
--   unfinished  the same; who follows is found by lua/mutex/sweep.lua, because so many waiters were passed over
--   free        nobody held it, or another than that
-- Invariants: I4 I5 I8
-- Constants
--   MOST_TOLD = 1000  holds, by one call
--
-- include: state
-- include: holder
-- include: ends
-- include: time

if redis.call('HMGET', lock, 'forced')[1] == request then return 'released' end
if not holder or ends < now or (only and only ~= hold) then return 'free' end

-- include: keys
local ended, lost = token, { hold }
if holds then lost = redis.call('ZRANGE', all, -MOST_TOLD, -1) end
-- include: unreported
-- include: open { mine = nil }
redis.call('HSET', lock, 'forced', request, 'clock', string.format('%.0f', clock))
for _, id in ipairs(lost) do
  redis.pcall('PUBLISH', INBOX .. id:sub(1, CLIENT_END), 'lost ' .. id .. ' ' .. ended .. ' ' .. lock)
end
return unfinished and 'unfinished' or 'released'
