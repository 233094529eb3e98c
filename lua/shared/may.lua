-- may: whether a caller may be granted its permits now: enough of them are free, and nobody waits.
--
-- Takes
--   taken    number   what all holds take together
--   wants    string   how many permits the caller wants
--   of       string   how many the lock has, by the caller's claim
--   queued?  ms       the time until which the queue's keys live
-- Gives
--   pending  boolean  permits are free, and somebody waits, who may be about to be admitted or passed over
--   may      boolean  the caller may be granted them
pending = queued and taken < of + 0
may = not queued and taken + wants <= of + 0
