-- opened: tells the unfair waiters of a read-write lock what a release has made possible. A reader's end lets nobody in while others read.
--
-- Takes
--   lock    HASH    the lock
--   client  string  who has released
--   record  string  the hold that has ended
--   taken   number  what those that are left take together
-- Gives
--   heard   number  how many were told
heard = 0
if taken == 0 or record:match(WANTS, RECORD_TERMS_AT) ~= '1' then
  heard = tonumber(redis.pcall('PUBLISH', lock .. ':unlock', 'free ' .. client)) or 0
end
