-- A claim is everything that a grant needs, in one text: what `acquire` is given, what waits in the queue, and what
-- stands behind token and end in `holder`:
--   "<id> <owner bytes> <lease ms> <waiterTtl ms> <headStart µs> <owner><label>"
-- An id has 28 characters. 0 owner bytes: the caller has no name, its owner is the id itself.
-- Sets `owned` to the holder's name, '' if it has none, and `label`.
local bytes, names = string.match(holder, '^ (%d+) %d+ %d+ %d+ (.*)$', 60)
local owned, label = string.sub(names, 1, bytes), string.sub(names, bytes + 1)
