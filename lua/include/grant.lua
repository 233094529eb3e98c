-- Writes a new holder: its claim, a token, the lease counted from now. Whoever held before must have been ended.
-- Expects `claimed`, `length` (its lease, ms) and `token`, the text of what include/token.lua has just made; and `block`, or
-- nil: so many tokens after this one are reserved for hand-offs within its client.
-- An owner with a name may wait elsewhere, too: its other waiters are told, and re-enter.
ends, hold = now + length, string.sub(claimed, 1, 28)
holder = token .. ' ' .. ends .. ' ' .. claimed
if block then reserved = clock + block end
local deadline = ends
-- include: life
if block then
  redis.call('HSET', lock, 'holder', holder, 'clock', token, 'keep', keep, 'reserved', string.format('%.0f', reserved))
elseif life then
  redis.call('HSET', lock, 'holder', holder, 'clock', token, 'keep', life)
else
  redis.call('HSET', lock, 'holder', holder, 'clock', token)
end
if life then redis.call('PEXPIREAT', lock, life) end
if string.sub(claimed, 29, 31) ~= ' 0 ' then
  local size, rest = string.match(claimed, '^ (%d+) %d+ %d+ %d+ (.*)$', 29)
  redis.pcall('PUBLISH', lock .. ':unlock', 'entered ' .. string.sub(rest, 1, size))
end
