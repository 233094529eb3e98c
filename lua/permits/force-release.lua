-- force-release: take the permits from whoever holds them, or from one holder, and let others in.
--
-- The lock remembers the latest request, so that one that is repeated, because its answer was lost, does not take them from the
-- next holders as well (I5). Each holder's client is told at once, by its inbox, that the hold may be gone; it asks before it
-- believes (I8).
--
-- KEYS
--   lock        HASH    the lock; its other keys follow from it (lua/shared/deadlines.lua, and queues.lua of its kind)
-- ARGV
--   request     string  unguessable; of this request, and no other
--   only?       string  the id of the holder that loses what it has; absent: each does
-- Replies
--   released    they have lost them
--   unfinished  the same, of as many as one call may; call again, which ends with `released`, and then lua/permits/sweep.lua
--   free        nobody held any, or not that one
-- Invariants: I4 I5 I8
-- Constants
--   MOST_FORCED = 250  holds, by one call
local id = ''
-- include: permits
-- include: deadlines

-- include: queues
-- include: time
if redis.call('HMGET', lock, 'forced')[1] == request then return 'released' end
-- include: lapse
local found = taken > 0 and (not only or redis.call('HMGET', lock, only)[1])
if not found and not queued then return 'free' end

if found then
  local lost = only and { only } or redis.call('ZRANGE', deadlines, 0, MOST_FORCED - 1)
  for _, id in ipairs(lost) do
    local record = redis.call('HMGET', lock, id)[1]
    if record then
      -- include: give-up
      local text = 'lost ' .. id .. ' ' .. record:sub(1, TOKEN_END) .. ' ' .. lock
      redis.pcall('PUBLISH', INBOX .. id:sub(1, CLIENT_END), text)
    end
  end
  if not only and taken > 0 then return 'unfinished' end
  redis.call('HSET', lock, 'forced', request)
end
-- Also where nobody is left to lose anything: what has lapsed is for those who wait.
-- include: admit { word = found and 'handoff' or word, by = nil, mine = nil, asks = nil }
if not found then return 'free' end
return (unfinished or more) and 'unfinished' or 'released'
