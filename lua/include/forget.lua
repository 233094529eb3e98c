-- The holder ends as a whole, with all its holds. Costs nothing where nobody re-entered.
if holds then
  redis.call('UNLINK', lock .. ':holds')
  redis.call('HDEL', lock, 'holds')
  holds = nil
end
