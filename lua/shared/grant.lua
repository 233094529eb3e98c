-- grant: writes a new holder: its claim, a token, the lease counted from now. Whoever held before must have been ended.
--
-- An owner with a name may wait elsewhere, too: its other waiters are told, and re-enter.
--
-- Takes
--   claim     string  of the new holder (include/claim.lua)
--   lease     ms      as in the claim
--   token     string  what include/token.lua has just made
--   block?    number  so many tokens after this one are reserved for hand-offs within its client
--   lock      HASH    the lock
--   now       ms      the server's time
--   clock     µs      the token as a number
-- Changes
--   holder    string  the new one
--   ends      ms      the end of its lease
--   hold      string  its id
--   keep      ms      the lock's key may live longer
--   reserved  µs      the last token of the block
ends, hold = now + lease, string.sub(claim, 1, ID_END)
holder = token .. ' ' .. ends .. ' ' .. claim
if block then reserved = clock + block end
-- include: life { deadline = ends }
if block then
  redis.call('HSET', lock, 'holder', holder, 'clock', token, 'keep', keep, 'reserved', string.format('%.0f', reserved))
elseif life then
  redis.call('HSET', lock, 'holder', holder, 'clock', token, 'keep', life)
else
  redis.call('HSET', lock, 'holder', holder, 'clock', token)
end
if life then redis.call('PEXPIREAT', lock, life) end
if string.sub(claim, TERMS_AT, NAMELESS_END) ~= NAMELESS then
  local size, rest = string.match(claim, NAMES, TERMS_AT)
  redis.pcall('PUBLISH', lock .. ':unlock', 'entered ' .. string.sub(rest, 1, size))
end
