-- number: gives the permits of a new hold their numbers, if its call has asked for them: the smallest from 0 that no
-- other such hold has (I1).
--
-- The field `slots` has a character for each number, up to the largest in use: '1' if a hold has it, otherwise '0'. It
-- is in the same hash as the records of the holds, so they are lost together. The numbers of a hold are in its claim
-- too (src/kinds/claim.ts), where lua/permits/semaphore/unnumber.lua finds them, however the hold ends. At most `of`
-- permits are taken, so the numbers are below that. A call that asks for none costs no command.
--
-- Takes
--   claim   string   the claim of a new hold
--   token   string   its token
--   lock    HASH     the lock
-- Gives
--   entry   string   the claim, with the numbers
--   answer  string   for the client: the token, with the numbers
-- Constants
--   NUMBERED = '^( %d+ %S+ %d+ %d+ (%d+)/%d+s)()'  the terms up to the numbers; permits wanted; the place of the numbers
entry, answer = claim, token
local head, wants, place = claim:match(NUMBERED, TERMS_AT)
if head then
  local used, numbers, at = redis.call('HMGET', lock, 'slots')[1] or '', {}, 0
  for i = 1, wants + 0 do
    at = used:find('0', at + 1, true) or math.max(#used, at) + 1
    used = used:sub(1, at - 1) .. '1' .. used:sub(at + 1)
    numbers[i] = at - 1
  end
  redis.call('HSET', lock, 'slots', used)
  local text = table.concat(numbers, '.')
  entry, answer = claim:sub(1, place - 1) .. text .. claim:sub(place), token .. ':' .. text
end
