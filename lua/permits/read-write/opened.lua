-- opened: tells the unfair waiters of a read-write lock, by a message, that a release has made room. While other
-- readers hold, the end of one reader makes no room for a waiter, so no message is sent.
--
-- Takes
--   lock    HASH    the lock
--   client  string  the client that released
--   record  string  the record of the hold that has ended
--   taken   number  what the remaining holds take together
-- Gives
--   heard   number  how many subscribers received the message
heard = 0
if taken == 0 or record:match(WANTS, RECORD_TERMS_AT) ~= '1' then
  heard = tonumber(redis.pcall('PUBLISH', lock .. ':unlock', 'free ' .. client)) or 0
end
