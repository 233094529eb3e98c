-- How long the keys of a lock live.

-- Keeps the lock's key until `memory` after `deadline`, and never drops it before its clock's own value is in the past:
-- after a forward excursion of the server's time, a shorter life would make the next token go backwards (I2).
-- The life moves on in steps of a quarter of `memory`, so that most calls need no command for it.
-- Returns the new life, to be recorded as `keep` and given to the key, or nil while the present one suffices.
local function prolongedLife(deadline)
  local needed = math.max(deadline, math.ceil(clock / 1000)) + memory
  if keep >= needed then return nil end
  keep = needed + math.floor(memory / 4)
  return keep
end
