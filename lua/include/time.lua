-- The server's clock: the only clock that decides anything (a client's may be wrong, stepped or stopped).
-- `now` is in whole ms, rounded down; `micros` is the same instant in µs.
-- A lease that ends at `ends` is live while ends >= now, so rounding down never ends one early (I1).
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)
