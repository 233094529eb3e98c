-- The server's clock: the only clock that decides anything (a client's may be wrong, stepped or stopped).
-- `now` is in whole ms, rounded down; `micros` is the same instant in µs. Read at most once per script.
-- A lease that ends at `until` is live while until >= now, so rounding down never ends one early (I1).
local micros, now

local function readTime()
  local time = redis.call('TIME')
  micros = time[1] * 1000000 + time[2]
  now = math.floor(micros / 1000)
end
