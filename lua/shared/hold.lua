-- hold: writes a new hold, whose lease counts from now.
--
-- The deadlines get their life each time, because they are a new key whenever nobody else holds (I7).
--
-- Takes
--   claim      string  of the new holder
--   token      string  its token
--   tick       string  `clock` as a text
--   taken      number  with what it wants
--   lock       HASH    the lock
--   deadlines  ZSET    lua/shared/deadlines.lua
--   now        ms      the server's time
--   clock      µs      the last ticket or token
-- Changes
--   keep       ms      the lock's key may live longer
local id, ends = claim:sub(1, ID_END), now + claim:match(LEASE, TERMS_AT)
-- include: life { deadline = ends }
redis.call('HSET', lock, id, token .. ' ' .. claim, 'taken', taken, 'clock', tick, 'keep', keep)
redis.call('ZADD', deadlines, ends, id)
redis.call('PEXPIREAT', deadlines, keep)
if life then redis.call('PEXPIREAT', lock, keep) end
-- include: own
