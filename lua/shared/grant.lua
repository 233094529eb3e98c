-- grant: writes a new holder: its claim, a token, and a lease that begins now. The previous holder must have been ended
-- before.
--
-- An owner with a name may also wait in other calls. The waiters of these calls learn of the grant from the message
-- 'entered', and re-enter.
--
-- Takes
--   claim     string  the new holder's claim (lua/shared/claim.lua)
--   lease     ms      the lease in the claim
--   token     string  the value that lua/shared/clock.lua has just issued
--   sampled?  string  see lua/shared/sample.lua
--   lock      HASH    the lock
--   now       ms      the server's time
--   stamp     string  the server's time, µs as text
--   clock     µs      the token as a number
-- Changes
--   holder    string  the new holder
--   ends      ms      the end of its lease
--   keep      ms      grows if the lock's key has to live longer
ends = now + lease
holder = token .. ' ' .. stamp .. ' ' .. claim
-- include: life { deadline = ends }
if sampled then
  redis.call('HSET', lock, 'holder', holder, 'clock', token, 'pace', sampled)
  if life then redis.call('HSET', lock, 'keep', life) end
elseif life then
  redis.call('HSET', lock, 'holder', holder, 'clock', token, 'keep', life)
else
  redis.call('HSET', lock, 'holder', holder, 'clock', token)
end
if life then redis.call('PEXPIREAT', lock, life) end
if claim:sub(TERMS_AT, NAMELESS_END) ~= NAMELESS then
  local size, rest = claim:match(NAMES, TERMS_AT)
  redis.pcall('PUBLISH', lock .. ':unlock', 'entered ' .. rest:sub(1, size))
end
