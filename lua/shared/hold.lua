-- hold: writes a new holder of a semaphore, whose lease counts from now.
--
-- The deadlines get their life each time, because they are a new key whenever nobody else holds (I7).
--
-- Takes
--   claim      string  of the new holder
--   token      string  what lua/shared/clock.lua has just made
--   taken      number  with what it wants
--   lock       HASH    the lock
--   deadlines  ZSET    lua/shared/deadlines.lua
--   now        ms      the server's time
--   clock      µs      the token as a number, or a later one
-- Changes
--   keep       ms      the lock's key may live longer
local id, ends = claim:sub(1, ID_END), now + claim:match(LEASE, TERMS_AT)
-- include: life { deadline = ends }
redis.call('HSET', lock, id, token .. ' ' .. claim, 'taken', taken, 'clock', token, 'keep', keep)
redis.call('ZADD', deadlines, ends, id)
redis.call('PEXPIREAT', deadlines, keep)
if life then redis.call('PEXPIREAT', lock, keep) end
