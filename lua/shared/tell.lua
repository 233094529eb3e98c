-- tell: tells waiters when a lease ends, because it ends before their next heartbeat. They do not know this lease: it
-- began after the last answer that they have received, or the holder's later leases were released. So they look again
-- when the lease has ended, and the lock does not stay without a holder until a heartbeat (I4).
--
-- Unfair waiters hear the message on the unlock channel. Of the fair waiters, only the first one needs it. If it is dead
-- too, the next heartbeat of another waiter grants the lock.
--
-- Takes
--   lasts     ms       the time left of the lease
--   lock      HASH     the lock
--   queue     ZSET     fair waiters by ticket
redis.pcall('PUBLISH', lock .. ':unlock', 'ends ' .. lasts)
local claim = redis.pcall('ZRANGE', queue, 0, 0)[1]
if claim then redis.pcall('PUBLISH', INBOX .. claim:sub(1, CLIENT_END), 'ends ' .. lasts .. ' ' .. lock) end
