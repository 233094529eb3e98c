-- sample: adds one hold to the pace of the lock, a running mean of the lengths of its last holds, about 32 of them.
-- Clients estimate from it for how long a queued caller will wait (src/kinds/expected.ts).
--
-- Only a release that finds callers queued adds its hold: it reads and writes the time and the hash anyway, so this
-- costs no command. A run of hand-offs within a client counts as one hold, because the queue waits for the whole run.
--
-- The steps are written with comparisons, because calls of math functions would cost more than the arithmetic.
--
-- Takes
--   spent     number  the length of the hold, µs; in a semaphore, times its permits
--   pace?     string  the mean in µs, times COUNTS, plus the number of holds that it is made of
-- Gives
--   renewed   string  the new value of the field `pace`
-- Constants
--   COUNTS = 64            more than the number of holds can be
--   MOST_COUNTED = 32      the largest number of holds
--   WEIGHT = 16            the newest hold counts for this part of the mean at least
--   MOST_SPENT = 100000000000000  a larger number would lose digits
local known = (pace or 0) + 0
local count = known % COUNTS
local mean, length = (known - count) / COUNTS, spent
if count < MOST_COUNTED then count = count + 1 end
if length < 0 then length = 0 elseif length > MOST_SPENT then length = MOST_SPENT end
mean = mean + (length - mean) / (count < WEIGHT and count or WEIGHT)
renewed = string.format('%.0f', (mean - mean % 1) * COUNTS + count)
