-- grant: writes a new holder: its claim, a token, the lease counted from now. Whoever held before must have been ended.
--
-- An owner with a name may wait elsewhere, too: its other waiters are told, and re-enter.
--
-- Takes
--   claim     string  of the new holder (lua/shared/claim.lua)
--   lease     ms      as in the claim
--   token     string  what lua/shared/clock.lua has just made
--   lock      HASH    the lock
--   now       ms      the server's time
--   stamp     string  the same
--   clock     µs      the token as a number
-- Changes
--   holder    string  the new one
--   ends      ms      the end of its lease
--   keep      ms      the lock's key may live longer
ends = now + lease
holder = token .. ' ' .. stamp .. ' ' .. claim
-- include: life { deadline = ends }
if life then
  redis.call('HSET', lock, 'holder', holder, 'clock', token, 'keep', life)
else
  redis.call('HSET', lock, 'holder', holder, 'clock', token)
end
if life then redis.call('PEXPIREAT', lock, life) end
if claim:sub(TERMS_AT, NAMELESS_END) ~= NAMELESS then
  local size, rest = claim:match(NAMES, TERMS_AT)
  redis.pcall('PUBLISH', lock .. ':unlock', 'entered ' .. rest:sub(1, size))
end
