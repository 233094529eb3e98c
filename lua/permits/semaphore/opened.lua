-- opened: sends the message to a semaphore's unfair waiters that a release has freed permits.
--
-- Takes
--   lock    HASH    the lock
--   client  string  the client that released
-- Gives
--   heard   number  how many subscribers received the message
heard = tonumber(redis.pcall('PUBLISH', lock .. ':unlock', 'free ' .. client)) or 0
