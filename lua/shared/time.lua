-- time: the server's time. Redis returns it as seconds and µs. Scripts use no other clock, because a client's clock may
-- be wrong, may jump or may stop. Dragonfly returns numbers, Redis texts.
--
-- Gives
--   stamp   string  µs as text, 16 digits
--   micros  µs      the same instant as a number
--   now     ms      the same instant in whole ms, rounded down. A lease that ends exactly at `now` is still live. So rounding down never ends a lease early (I1)
local time = redis.call('TIME')
local second, rest = time[1], time[2] .. ''
stamp = #rest == 6 and second .. rest or second .. ('00000' .. rest):sub(-6)
micros = stamp + 0
now = math.floor(micros / 1000)
