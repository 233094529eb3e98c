-- A claim is everything that a grant needs, in one text: what `acquire` is given, what waits in the queue, and what
-- stands behind token and end in `holder`:
--   "<id> <owner bytes> <lease ms> <waiterTtl ms> <headStart µs> <owner><label>"
-- An id has 28 characters. 0 owner bytes: the caller has no name, its owner is the id itself.
-- Sets `names` to the holder's owner and label, of which the first `bytes` are the owner.
local bytes, names = string.match(holder, '^ (%d+) %d+ %d+ %d+ (.*)$', 60)
