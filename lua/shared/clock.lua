-- clock: the next value of the hybrid clock that tickets and fencing tokens come from.
--
-- It never repeats and never goes back while the lock's key lives, and it follows the time of day, so that a lock whose
-- key was lost starts above all it ever issued (I2). In µs it has 16 digits, more than a Lua number prints by itself:
-- hence '%.0f'. That costs more than a command, so the text of Redis's own time is taken wherever it is the value.
--
-- Takes
--   stamp   string  the server's time
--   micros  µs      the same
-- Changes
--   clock   µs      moves on
-- Gives
--   tick    string  the same as a text
if clock < micros then
  clock, tick = micros, stamp
else
  clock = clock + 1
  tick = string.format('%.0f', clock)
end
