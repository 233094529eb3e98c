-- begin: begins a writer's turn. Called after the writer's client has received the message of the grant.
--
-- Takes
--   lock   HASH    the lock
--   taken  number  what all holds take together, with the newly admitted ones
if taken >= ALL_PERMITS then redis.call('HSET', lock, 'turn', WRITERS_TURN) end
