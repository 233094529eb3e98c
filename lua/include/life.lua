-- How long the lock's key lives. Expects `deadline`, ms; sets `life` to a new life of the key, which the caller gives to
-- the key and records as `keep`, or to nil while the present one suffices.
-- The key is kept until `memory` after the deadline, and never dropped before the largest token that was issued from it is in the
-- past: after a forward excursion of the server's time, a shorter life would make the next token go backwards (I2).
-- The life moves on in steps of a quarter of `memory`, so that most calls need no command for it.
local life
local needed = math.max(deadline, math.ceil(math.max(clock, reserved) / 1000)) + memory
if keep < needed then
  keep = needed + math.floor(memory / 4)
  life = keep
end
