-- spent: what a hold adds to the pace of the lock, if it ends a turn: the length of the turn, of the readers or of a
-- writer. Callers wait for the ends of turns, however many readers each turn has.
--
-- Takes
--   length   µs      how long the hold has lasted
--   record   string  its record
--   taken    number  what all holds take together, this one included
-- Gives
--   spent?   number  for lua/shared/sample.lua; absent: other holds of the turn go on
if taken - record:match(WANTS, RECORD_TERMS_AT) == 0 then spent = length end
