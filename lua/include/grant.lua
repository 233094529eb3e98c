-- Writes a new holder: a new token, one hold, the lease counted from now. Whoever held before must have been ended.
local function grant(id, newOwner, newLabel, lease)
  token = digits(tick())
  owner, hold, label, ends = newOwner, id, newLabel, now + lease
  local life = prolongedLife(ends)
  if life then
    redis.call('HSET', lock, 'owner', owner, 'hold', id, 'until', ends, 'token', token, 'clock', token, 'label', label,
      'keep', life)
    redis.call('PEXPIREAT', lock, life)
  else
    redis.call('HSET', lock, 'owner', owner, 'hold', id, 'until', ends, 'token', token, 'clock', token, 'label', label)
  end
end
