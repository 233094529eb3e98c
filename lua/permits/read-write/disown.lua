-- disown: an owner with a name has a record of what it holds (lua/permits/read-write/own.lua). When a hold of such an
-- owner has ended, this file takes the hold out of that record.
--
-- Takes
--   record  string  the record of the hold
--   lock    HASH    the lock
-- Constants
--   RECORD_NAMELESS_END = 48  the last of the characters that show whether the owner has a name (NAMELESS, lua/shared/claim.lua)
-- A retained hold (lua/permits/release.lua) is no longer among what its owner holds.
if record:sub(RECORD_TERMS_AT, RECORD_NAMELESS_END) ~= NAMELESS and record:sub(CLAIM_AT, CLAIM_AT) ~= KEPT then
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
