-- force-release: take the lock from its holder, and hand it to the next fair waiter, or leave it free.
--
-- One call is enough, even if the lock changes hands quickly, because the call takes the lock from whichever holder it
-- finds. Each request has a name, and the lock stores the name of the latest request. So if the answer is lost and the
-- request is repeated, the second call does not take the lock from the next holder (I5).
-- The client of each hold receives a message in its inbox that the hold may be lost. The client then asks Redis whether
-- the hold is lost (I8). One call sends a limited number of such messages. If the holder has more holds, the clients of
-- the remaining holds learn of the loss when they renew.
--
-- KEYS
--   lock        HASH    the lock
--   queue?      ZSET    fair waiters by ticket
--   deadlines?  ZSET    the ends of re-entered holds, and waiters' deadlines (lua/holder.lua)
-- ARGV
--   request     string  an unguessable name for this request only
--   only?       string  the id of the holder that loses the lock, as it is shown; absent: any holder
-- Replies
--   released    the holder has lost the lock
--   unfinished  the holder has lost the lock, but one call may pass over only so many waiters; lua/mutex/sweep.lua finds the next holder
--   free        the lock has no holder, or its holder is not `only`
-- Invariants: I4 I5 I8

-- functions
local s = readHolder(lock, queue, deadlines)
if redis.call('HMGET', lock, 'forced')[1] == request then return 'released' end
if not s.holder or s.ends < s.now then return 'free' end

--[[cluster
if not deadlines then return redis.error_reply('ERR non local key') end
--]]
-- functions
if s.holds then show(s) end
-- The first character of a retained hold's id has changed (`retain`).
if only and only:sub(2) ~= s.holder:sub(HELD_ID_AT + 1, HELD_ID_END) then return 'free' end

local ended, lost = s.token, { s.hold }
if s.holds then
  local many = redis.call('ZCOUNT', deadlines, '-inf', '(' .. WAITER)
  lost = redis.call('ZRANGE', deadlines, math.max(0, many - MOST_TOLD), many - 1)
end
s.clock = math.max(s.clock, s.token + BLOCK)
local _, unfinished = openLock(s, nil, nil)
redis.call('HSET', lock, 'forced', request, 'clock', string.format('%.0f', s.clock))
for _, id in ipairs(lost) do
  redis.pcall('PUBLISH', INBOX .. id:sub(1, CLIENT_END), 'lost ' .. id .. ' ' .. ended .. ' ' .. lock)
end
return unfinished and 'unfinished' or 'released'
