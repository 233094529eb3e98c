-- own: records what an owner with a name holds, so that it may re-enter. The record is a field of the lock's hash,
-- named after the owner. Its value is "<token> <id of the owner's first hold> <sum of the permits that its holds
-- want>".
--
-- When such an owner begins to hold, its other waiters learn this from the message 'entered'. There is one exception.
-- If the caller of a hold gave no name, the calls that are nested in that hold have its id as their owner. Such an
-- owner has no other waiters, so no message is sent.
--
-- Takes
--   claim  string  the claim of a new hold
--   token  string  its token
--   lock   HASH    the lock
-- Constants
--   OWNED_BY = '@'       the first character of the field's name; no id begins with it
--   FIRST_AT = 18        the first character of the id in such a field
--   FIRST_END = 45       the last character of that id
--   OWNED_AT = 47        the first character of the sum
if claim:sub(TERMS_AT, NAMELESS_END) ~= NAMELESS then
  -- include: owner
  local sum = (known and known:sub(OWNED_AT) or 0) + claim:match(WANTS, TERMS_AT)
  local first = known and known:sub(1, FIRST_END) or token .. ' ' .. claim:sub(1, ID_END)
  redis.call('HSET', lock, OWNED_BY .. owner, first .. ' ' .. string.format('%.0f', sum))
  local inside = #owner == ID_END and owner:sub(1, CLIENT_END) == claim:sub(1, CLIENT_END)
  if not known and not inside then redis.pcall('PUBLISH', lock .. ':unlock', 'entered ' .. owner) end
end
