-- life: how long the lock's key has to live.
--
-- The key is kept until MEMORY after the deadline, and never dropped before the largest token that was issued from it is in
-- the past: after a forward excursion of the server's time, a shorter life would make the next token go backwards (I2).
-- The life moves on in steps of a quarter of MEMORY, so that most calls need no command for it.
--
-- Takes
--   deadline  ms  until when the key is surely needed
--   clock     µs  the last ticket or token
-- Changes
--   keep      ms  when the key expires, once the includer has recorded that
-- Gives
--   life?     ms  a new life, which the includer gives to the key; absent while the present one suffices
local needed = deadline * 1000 < clock and math.ceil(clock / 1000) + MEMORY or deadline + MEMORY
if keep < needed then
  keep = needed + math.floor(MEMORY / 4)
  life = keep
end
