-- The re-entrant holds of the holder: a field "hold:<id>" each, beside the field "hold" of the first.

local function reentries()
  local fields = {}
  if holds then
    for _, field in ipairs(redis.call('HKEYS', lock)) do
      if string.sub(field, 1, 5) == 'hold:' then fields[#fields + 1] = field end
    end
  end
  return fields
end

-- Removes them, when the holder ends as a whole. Costs nothing where nobody re-entered.
local function forgetReentries()
  if not holds then return end
  redis.call('HDEL', lock, 'holds', unpack(reentries()))
  holds = nil
end
