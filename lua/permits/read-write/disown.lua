-- disown: records that a hold of an owner with a name has ended (lua/permits/read-write/own.lua).
--
-- Takes
--   record  string  the record of the hold
--   lock    HASH    the lock
-- Constants
--   RECORD_NAMELESS_END = 48  the last character of a record that is compared with NAMELESS (lua/shared/claim.lua)
if record:sub(RECORD_TERMS_AT, RECORD_NAMELESS_END) ~= NAMELESS then
  local size, names = record:match(NAMES_BEHIND, RECORD_TERMS_AT)
  local field = OWNED_BY .. names:sub(1, size)
  local known = redis.call('HMGET', lock, field)[1]
  local sum = known and known:sub(OWNED_AT) - record:match(WANTS, RECORD_TERMS_AT) or 0
  if sum > 0 then
    redis.call('HSET', lock, field, known:sub(1, FIRST_END) .. ' ' .. string.format('%.0f', sum))
  else
    redis.call('HDEL', lock, field)
  end
end
