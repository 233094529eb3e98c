-- opened: tells the unfair waiters of a semaphore that a release has given some of it back.
--
-- Takes
--   lock    HASH    the lock
--   client  string  who has released
-- Gives
--   heard   number  how many were told
heard = tonumber(redis.pcall('PUBLISH', lock .. ':unlock', 'free ' .. client)) or 0
