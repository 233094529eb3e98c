-- sweep: continue the search for the next holder, after an earlier call has reached the limit of dead waiters that one
-- call may pass over.
--
-- The bound on each call keeps the server free for other clients. Between two calls the lock has a queue and no holder.
-- No newcomer is granted the lock then, because every call that asks for it continues the search first. So if the
-- caller dies in between, only time is lost (I4).
--
-- KEYS
--   lock        HASH    the lock
--   queue?      ZSET    fair waiters by ticket
--   deadlines?  ZSET    the ends of re-entered holds, and waiters' deadlines (lua/holder.lua)
-- Replies
--   swept       the lock has a holder, or the queue is empty
--   unfinished  call again
-- Invariants: I3 I4

-- functions
local s = readHolder(lock, queue, deadlines)
if s.holder and s.ends >= s.now or not s.queued then return 'swept' end
--[[cluster
if not deadlines then return redis.error_reply('ERR non local key') end
--]]
-- functions
local lapsed = s.holder
if lapsed then s.clock = math.max(s.clock, s.token + BLOCK) end
local successor, unfinished = openLock(s, nil, nil)
if lapsed and not successor then redis.call('HSET', lock, 'clock', string.format('%.0f', s.clock)) end
return unfinished and 'unfinished' or 'swept'
