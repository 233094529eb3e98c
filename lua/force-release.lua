-- force-release: take the lock from the holder that was seen, whoever it is, and hand it on.
--
-- The caller names the fencing token it saw, so that a repeated request does not take the lock from the next holder.
-- Each hold's client is told at once, by its inbox, that the hold may be gone; it asks before it believes (I8).
--
-- KEYS
--   lock      HASH    the lock
--   queue     ZSET    fair waiters by ticket
--   expiry    ZSET    waiters' deadlines, ms
-- ARGV
--   seen      string  fencing token of the holder to end
--   inbox     string  prefix of the grant channels
--   memory    ms      how long a free lock's clock is kept
-- Replies
--   released  that holder has lost the lock
--   changed   it was not the holder any more
-- Invariants: I4 I5 I8
-- include: state
-- include: holder
-- include: time

if not holder or token ~= seen or ends < now then return 'changed' end

local lost = {}
if string.sub(hold, 13) ~= string.rep('-', 16) then lost[1] = hold end
local mine
-- include: open
for _, field in ipairs(forgotten) do lost[#lost + 1] = string.sub(field, 6) end
for _, id in ipairs(lost) do
  redis.pcall('PUBLISH', inbox .. string.sub(id, 1, 12), 'lost ' .. id .. ' ' .. seen .. ' ' .. lock)
end
return 'released'
