-- claim: the names in the holder's claim.
--
-- A claim is one text with everything that a grant needs. It is the argument of `acquire`, and the entry in the queue.
-- It is also the end of `holder`, after the token and the start of the lease (lua/shared/holder.lua). Its form:
--   "<id> <owner bytes> <lease ms> <waiterTtl ms> <headStart µs> <owner><label>"
-- If the call has a `minHold`, the lease has a suffix, and is the longer of the two (lua/shared/retain.lua):
--   "<lease ms>m<minHold ms>,<the call's own lease ms>"
-- An id has 28 characters; the first 12 name its client's inbox. If the number of owner bytes is 0, the caller has no
-- name, and its owner is the id itself. Clients write and read claims with src/kinds/claim.ts. Scripts read them with
-- the constants below. The part of a claim after its id is called its terms.
--
-- Takes
--   holder   string  see lua/shared/state.lua; the lock must have a holder
-- Gives
--   bytes    string  how many bytes of `names` are the owner
--   names    string  the holder's owner and label
-- Constants
--   CLIENT_END = 12                                 the last character of the client's part of an id
--   ID_END = 28                                     the last character of the id, which is at the start of a claim
--   TERMS_AT = 29                                   the first character of the terms, to which the patterns below apply
--   NAMELESS = ' 0 '                                the first characters of the terms if the caller has no name
--   NAMELESS_END = 31                               the last of those characters
--   NAMES = '^ (%d+) %S+ %d+ %d+ (.*)$'             owner bytes; owner and label
--   LEASE = '^ %d+ (%d+)'                           lease
--   OWN_LEASE = '^ %d+ %d+m%d+,(%d+)'               the call's own lease; absent without a `minHold`
--   MIN_HOLD = '^ %d+ %d+m(%d+)'                    minHold; absent if the call gave none
--   WAITING = '^ %d+ %S+ (%d+) (%d+) '              waiterTtl, headStart
--   LEASE_AND_WAITING = '^ %d+ (%d+)%S* (%d+) (%d+) '  lease, waiterTtl, headStart
bytes, names = holder:match(NAMES, HELD_TERMS_AT)
-- The owner of a retained hold does not re-enter it (lua/shared/retain.lua), so its waiters need not try.
if holder:sub(HELD_ID_AT, HELD_ID_AT) == KEPT then
  names, bytes = names:sub(bytes + 1), '0'
end
