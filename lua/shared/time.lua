-- time: the server's time. Only the server's clock decides anything, because a client's clock may be wrong, stepped or
-- stopped.
--
-- Gives
--   stamp   string  µs as text: the 16 digits that Redis returns
--   micros  µs      the same instant as a number
--   now     ms      whole, rounded down: a lease that ends at `ends` is live while ends >= now, so none ends early (I1)
local time = redis.call('TIME')
local second, rest = time[1], time[2]
stamp = #rest == 6 and second .. rest or second .. ('00000' .. rest):sub(-6)
micros = stamp + 0
now = (micros - micros % 1000) / 1000
