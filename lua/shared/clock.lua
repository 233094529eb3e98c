-- clock: the next value of the hybrid clock that issues tickets and fencing tokens.
--
-- The clock never repeats a value or goes back while the lock's key lives. A new value is never behind the time of day.
-- If the lock's key is lost, the clock starts again from the time of day, above every value that it ever issued (I2). A
-- value in µs has 16 digits. By default, Lua prints fewer digits of a number, so the format is '%.0f'. Formatting costs
-- more than a Redis command. So if the value is Redis's own time, the text from Redis is used.
--
-- Takes
--   stamp   string  the server's time, µs as text
--   micros  µs      the server's time
-- Changes
--   clock   µs      advances to the new value
-- Gives
--   tick    string  the new value as text
if clock < micros then
  clock, tick = micros, stamp
else
  clock = clock + 1
  tick = string.format('%.0f', clock)
end
