-- hold: writes a new hold, whose lease begins now.
--
-- The key of the deadlines is new if there is no other holder. So each new hold sets the key's life (I7).
--
-- Takes
--   claim      string  the new holder's claim
--   token      string  its token
--   tick       string  `clock` as text
--   taken      number  already includes what the claim wants
--   lock       HASH    the lock
--   deadlines  ZSET    see lua/shared/live.lua
--   now        ms      the server's time
--   clock      µs      the last ticket or token
-- Changes
--   keep       ms      grows if the lock's key has to live longer
-- Gives
--   lease      ms      the length of the lease
--   answer     string  see lua/permits/semaphore/number.lua
--   brief      boolean the lease ends before the next heartbeat of waiters, which do not know this lease (lua/shared/tell.lua)
local ttl, entry
-- include: number
lease, ttl = claim:match(LEASE_AND_WAITING, TERMS_AT)
brief = lease * 3 < ttl + 0
local id, ends = claim:sub(1, ID_END), now + lease
-- include: life { deadline = ends }
redis.call('HSET', lock, id, token .. ' ' .. entry, 'taken', taken, 'clock', tick, 'keep', keep)
redis.call('ZADD', deadlines, ends, id)
redis.call('PEXPIREAT', deadlines, keep)
if life then redis.call('PEXPIREAT', lock, keep) end
-- include: own
