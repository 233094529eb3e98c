-- opened: tells the unfair waiters of a read-write lock, by a message, that a release has made room. If a reader has
-- released while other readers hold, no message is sent, because only writers wait then, and they have to wait for the
-- other readers too.
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
