-- permits: reads with one call how much of a semaphore is taken, and the record of one hold.
--
-- A holder is a field of the lock's own hash, named by its id, with the value "<token> <claim>". The number of taken
-- permits is in the same hash. So no permits stay taken if the records of their holders are lost. The hold's deadline
-- is in a ZSET, which finds lapsed holds without a walk over all holds (lua/shared/lapse.lua). A semaphore's claim has
-- two more numbers than a mutex's, after `headStart`: the permits that it wants, and the permits that the semaphore has
-- (src/kinds/claim.ts).
--
-- Takes
--   lock     HASH    the lock
--   id       string  a waiter, and the hold that it may have become
-- Gives
--   taken    number  the permits of all recorded holders; some of their leases may have lapsed
--   clock    µs      the last ticket or token issued
--   queued?  ms      the time until which the queue's keys live; absent: nobody is queued
--   mark?    string  the text of `queued`; while the lock has groups, it is no number (lua/permits/semaphore/groups/mode.lua)
--   keep     ms      the time at which the lock's own key expires, or 0
--   pace?    string  see lua/shared/sample.lua
--   record?  string  "<token> <claim>" of the hold; absent: the id holds nothing
-- Constants
--   CLAIM_AT = 18                                   the first character of the claim in a record
--   RECORD_TERMS_AT = 46                            the first character after the claim's id in a record
--   WANTS = '^ %d+ %S+ %d+ %d+ (%d+)/(%d+)'         permits wanted; permits of the semaphore
--   NAMES_BEHIND = '^ (%d+) %S+ %d+ %d+ %d+/%S+ (.*)$'  owner bytes; owner and label
--   NUMBER_AND_NAMES = '^ (%d+) %S+ %d+ %d+ %d+/(%d+)%S* (.*)$'  owner bytes; permits of the semaphore; owner and label
local fields = redis.call('HMGET', lock, 'taken', 'clock', 'queued', 'keep', id, 'pace')
taken, clock, keep, record = (fields[1] or 0) + 0, (fields[2] or 0) + 0, (fields[4] or 0) + 0, fields[5]
mark, pace = fields[3], fields[6]
if mark then queued = tonumber(mark) end
