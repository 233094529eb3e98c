-- The numbers of permits, for calls that ask for them: an `s` follows the permits in their claims (src/kinds/claim.ts).
--
-- The field `slots` has a character for each number, up to the largest in use: '1' if a hold has it, otherwise '0'. It is in
-- the same hash as the records of the holds, so they are lost together. The numbers of a hold are in its claim too. At most
-- `of` permits are taken, so the numbers are below that. A call that asks for none costs no command.
--
-- Constants
--   NUMBERED = '^( %d+ %S+ %d+ %d+ (%d+)/%d+s)()'   the terms up to the numbers of the permits; permits wanted; the place of the numbers
--   NUMBERS = '^ %d+ %S+ %d+ %d+ %d+/%d+s([%d.]+)'  the numbers of a hold

-- Gives the permits of a new hold their numbers, if its call has asked for them: the smallest from 0 that no other such hold
-- has (I1). Returns the claim and the token, both with the numbers.
local function giveNumbers(s, claim, token)
  if s.readers then return claim, token end
  local head, wants, place = claim:match(NUMBERED, TERMS_AT)
  if not head then return claim, token end
  local used, numbers, at = redis.call('HMGET', s.lock, 'slots')[1] or '', {}, 0
  for i = 1, wants + 0 do
    at = used:find('0', at + 1, true) or math.max(#used, at) + 1
    used = used:sub(1, at - 1) .. '1' .. used:sub(at + 1)
    numbers[i] = at - 1
  end
  redis.call('HSET', s.lock, 'slots', used)
  local text = table.concat(numbers, '.')
  return claim:sub(1, place - 1) .. text .. claim:sub(place), token .. ':' .. text
end

-- Frees the numbers of a hold that has ended, however it has ended.
local function freeNumbers(s, record)
  local numbers = not s.readers and record:match(NUMBERS, RECORD_TERMS_AT)
  if not numbers then return end
  local used = redis.call('HMGET', s.lock, 'slots')[1] or ''
  for number in numbers:gmatch('%d+') do
    used = used:sub(1, number) .. '0' .. used:sub(number + 2)
  end
  redis.call('HSET', s.lock, 'slots', (used:gsub('0+$', '')))
end

-- The numbers of a hold, as they follow its token in a reply.
local function numbersOf(record)
  local numbers = record:match(NUMBERS, RECORD_TERMS_AT)
  return numbers and ':' .. numbers or ''
end
