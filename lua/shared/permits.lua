-- permits: what is taken of a semaphore, and by whom, by one call.
--
-- A holder is a field of the lock itself, by its id, so that no loss of data leaves permits taken that nobody holds:
-- "<token> <claim>". Its deadline stands in a ZSET, which finds those that are over without a walk (lua/shared/lapse.lua).
-- A claim of a semaphore says behind its terms how many permits it wants, and of how many (src/kinds/claim.ts).
--
-- Takes
--   lock     HASH    the lock
--   id       string  a waiter, and the hold it may have become
-- Gives
--   taken    number  the permits of all holders together, as Redis knows them: some may be over
--   clock    µs      the last ticket or token issued
--   queued?  ms      until which the queue's keys are kept; absent: nobody is queued
--   keep     ms      at which the lock's own key expires, or 0
--   record?  string  "<token> <claim>", if the id is a holder's
-- Constants
--   CLAIM_AT = 18                                   in a record, the claim
--   RECORD_TERMS_AT = 46                            the same without its id
--   WANTS = '^ %d+ %d+ %d+ %d+ (%d+)/(%d+) '        permits, and of how many
--   NAMES_BEHIND = '^ (%d+) %d+ %d+ %d+ %d+/%d+ (.*)$'  owner bytes; owner and label
--   NUMBER_AND_NAMES = '^ (%d+) %d+ %d+ %d+ %d+/(%d+) (.*)$'  the same, and between them of how many permits
local fields = redis.call('HMGET', lock, 'taken', 'clock', 'queued', 'keep', id)
taken, clock, keep, record = (fields[1] or 0) + 0, (fields[2] or 0) + 0, (fields[4] or 0) + 0, fields[5]
if fields[3] then queued = fields[3] + 0 end
