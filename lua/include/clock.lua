-- The hybrid clock that tickets and fencing tokens come from: it never repeats and never goes back while the lock's
-- key lives, and it follows the time of day, so that a lock whose key was lost starts above all it ever issued (I2).
-- Moves `clock` on to a new value. In µs it has 16 digits, more than a Lua number prints by itself: hence '%.0f'.
clock = math.max(clock + 1, micros)
