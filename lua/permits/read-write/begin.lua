-- begin: the turn of a writer begins, as it has heard that it is admitted.
--
-- Takes
--   lock   HASH    the lock
--   taken  number  what all holds take together, with those that have been admitted
if taken >= ALL_PERMITS then redis.call('HSET', lock, 'turn', WRITERS_TURN) end
