-- Writes a new holder: its claim, a token, the lease counted from now. Whoever held before must have been ended.
-- Expects `claimed`, `length` (its lease, ms) and `token`, which include/clock.lua has just made; and `block`, or nil: so
-- many tokens after this one are reserved for hand-offs within its client.
ends, hold = now + length, string.sub(claimed, 1, 28)
holder = token .. ' ' .. ends .. ' ' .. claimed
local issued = token
if block then
  clock = clock + block
  issued = string.format('%.0f', clock)
end
local deadline = ends
-- include: life
if life then
  redis.call('HSET', lock, 'holder', holder, 'clock', issued, 'keep', life)
  redis.call('PEXPIREAT', lock, life)
else
  redis.call('HSET', lock, 'holder', holder, 'clock', issued)
end
