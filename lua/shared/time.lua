-- time: the server's clock: the only clock that decides anything (a client's may be wrong, stepped or stopped).
--
-- Gives
--   stamp   string  the instant as a text: 16 digits of µs, as Redis has given them
--   micros  µs      the same as a number
--   now     ms      whole, rounded down: a lease that ends at `ends` is live while ends >= now, so none ends early (I1)
local time = redis.call('TIME')
local second, rest = time[1], time[2]
stamp = #rest == 6 and second .. rest or second .. ('00000' .. rest):sub(-6)
micros = stamp + 0
now = (micros - micros % 1000) / 1000
