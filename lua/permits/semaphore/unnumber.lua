-- unnumber: frees the numbers of a hold that has ended (lua/permits/semaphore/number.lua).
--
-- Takes
--   record  string  the record of the hold
--   lock    HASH    the lock
-- Constants
--   NUMBERS = '^ %d+ %S+ %d+ %d+ %d+/%d+s([%d.]+)'  the numbers of a hold
local numbers = record:match(NUMBERS, RECORD_TERMS_AT)
if numbers then
  local used = redis.call('HMGET', lock, 'slots')[1] or ''
  for number in numbers:gmatch('%d+') do
    used = used:sub(1, number) .. '0' .. used:sub(number + 2)
  end
  redis.call('HSET', lock, 'slots', (used:gsub('0+$', '')))
end
