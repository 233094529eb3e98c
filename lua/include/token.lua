-- Makes a fencing token: above every ticket and token that was issued, and above those that the holder before may have issued
-- by itself. They are kept apart from the clock, which would otherwise run ahead of the time of day by a block for each hold
-- that is handed on before its block has been used: and then neither tokens after a loss of data nor the age of tickets could
-- be trusted. Moves `clock` on to it.
clock = math.max(clock, reserved)
-- include: clock
