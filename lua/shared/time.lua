-- time: the server's clock: the only clock that decides anything (a client's may be wrong, stepped or stopped).
--
-- Gives
--   now     ms  whole, rounded down: a lease that ends at `ends` is live while ends >= now, so none ends early (I1)
--   micros  µs  the same instant
local time = redis.call('TIME')
micros = time[1] * 1000000 + time[2]
now = math.floor(micros / 1000)
