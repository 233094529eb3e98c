-- opened: tells the unfair waiters of a semaphore, by a message, that a release has freed permits.
--
-- Takes
--   lock    HASH    the lock
--   client  string  the client that released
-- Gives
--   heard   number  how many subscribers received the message
heard = tonumber(redis.pcall('PUBLISH', lock .. ':unlock', 'free ' .. client)) or 0
