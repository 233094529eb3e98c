-- tell: tells waiters when a lease ends, because it ends before their next heartbeat. They do not know this lease: it
-- began after the last answer that they have received, or the holder's later leases were released. So they look again
-- when the lease has ended, and the lock does not stay without a holder until a heartbeat (I4).
--
-- Unfair waiters hear the message on the unlock channel. Of the fair waiters, only the first one that receives messages
-- needs it. If many at the head are dead, nobody may receive it, and the next heartbeat grants the lock.
--
-- Takes
--   lasts     ms       the time left of the lease
--   lock      HASH     the lock
--   queue     ZSET     fair waiters by ticket
-- Constants
--   MOST_ASKED = 10    waiters to whom one call sends the message, at most
redis.pcall('PUBLISH', lock .. ':unlock', 'ends ' .. lasts)
local at, reached = 0, 0
while reached == 0 and at < MOST_ASKED do
  local claim = redis.pcall('ZRANGE', queue, at, at)[1]
  reached = claim and redis.pcall('PUBLISH', INBOX .. claim:sub(1, CLIENT_END), 'ends ' .. lasts .. ' ' .. lock)
  at = at + 1
end
