-- The parts of `holder`: the token, µs, 16 digits; `ends`, ms by the server's clock at which the last of the holder's leases
-- ends, 13 digits; and the id of the holder's first hold, with which the granted claim begins. All nil where nobody holds.
local token, ends, hold
if holder then
  token, ends, hold = string.sub(holder, 1, 16), tonumber(string.sub(holder, 18, 30)), string.sub(holder, 32, 59)
end
