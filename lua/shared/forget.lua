-- forget: the holder ends as a whole, with all its holds. Costs nothing where nobody re-entered.
--
-- Takes
--   lock    HASH    the lock
-- Changes
--   holds   string  absent from here on
if holds then
  redis.call('UNLINK', lock .. ':holds')
  redis.call('HDEL', lock, 'holds')
  holds = nil
end
