-- own: notes what an owner with a name holds, so that it may re-enter: in a field of the lock, by its name,
-- "<token> <id of its first hold> <sum of what its holds want>". Its other waiters are told as soon as it holds something; those inside a
-- hold without a name have none.
--
-- Takes
--   claim  string  of a new hold
--   token  string  its token
--   lock   HASH    the lock
-- Constants
--   OWNED_BY = '@'       how the field's name begins: no id does
--   FIRST_AT = 18        in such a field, the id
--   FIRST_END = 45       where it ends
--   OWNED_AT = 47        the sum
if claim:sub(TERMS_AT, NAMELESS_END) ~= NAMELESS then
  -- include: owner
  local sum = (known and known:sub(OWNED_AT) or 0) + claim:match(WANTS, TERMS_AT)
  local first = known and known:sub(1, FIRST_END) or token .. ' ' .. claim:sub(1, ID_END)
  redis.call('HSET', lock, OWNED_BY .. owner, first .. ' ' .. string.format('%.0f', sum))
  local inside = #owner == ID_END and owner:sub(1, CLIENT_END) == claim:sub(1, CLIENT_END)
  if not known and not inside then redis.pcall('PUBLISH', lock .. ':unlock', 'entered ' .. owner) end
end
