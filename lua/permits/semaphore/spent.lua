-- spent: what a hold adds to the pace of the lock: its length, times its permits. So the pace, divided by the permits of
-- the semaphore, is the time between two grants, however many permits each caller wants.
--
-- Takes
--   length   µs      how long the hold has lasted
--   record   string  its record
-- Gives
--   spent?   number  for lua/shared/sample.lua
spent = length * record:match(WANTS, RECORD_TERMS_AT)
