-- The holder ends as a whole: its re-entrant holds are removed. Costs nothing where nobody re-entered. Sets `forgotten`
-- to their fields.
local forgotten = {}
if holds then
  for _, field in ipairs(redis.call('HKEYS', lock)) do
    if string.sub(field, 1, 5) == 'hold:' then forgotten[#forgotten + 1] = field end
  end
  redis.call('HDEL', lock, 'holds', unpack(forgotten))
  holds = nil
end
