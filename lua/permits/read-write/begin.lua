-- begin: begins a writer's turn, after the message of its grant has been received.
--
-- Takes
--   lock   HASH    the lock
--   taken  number  what all holds take together, with the newly admitted ones
if taken >= ALL_PERMITS then redis.call('HSET', lock, 'turn', WRITERS_TURN) end
