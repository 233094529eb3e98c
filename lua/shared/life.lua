-- life: how long the lock's key has to live.
--
-- MEMORY is the client's `tokenMemory`, in ms. Tickets and tokens are times of the lock's clock, in µs. The key lives
-- until LINGER after the deadline, until MEMORY after this call, and until MEMORY after the last ticket or token
-- (`clock`). So a waiter that looks when a lease has lapsed still finds its holder. The last token may be later than
-- the present time, if the server's clock was ahead for a while. If the key expired before the time of the last token,
-- the next token would be smaller (I2). The life grows in steps of a tenth of MEMORY, so most calls need no command to
-- prolong it.
--
-- Takes
--   deadline  ms  the time until which the key is needed in any case
--   clock     µs  the last ticket or token
--   now       ms  the server's time
-- Changes
--   keep      ms  the time at which the key expires; the includer has to record it
-- Gives
--   life?     ms  the new expiry, which the includer has to set on the key; absent: the present one suffices
-- Constants
--   LINGER = 5000  ms for which a lapsed lease can still be found
local needed = math.max(deadline + LINGER, MEMORY + (now * 1000 < clock and math.ceil(clock / 1000) or now))
if keep < needed then
  keep = needed + math.floor(MEMORY / 10)
  life = keep
end
