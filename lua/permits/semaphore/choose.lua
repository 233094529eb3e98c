-- choose: who is admitted to a semaphore: from the head of the queue on, for as long as the head fits.
--
-- Strictly first come, first served: a head that wants more than is free is waited for, and nobody passes it. Whether a claim
-- fits is judged by its own number, so that a deployment that raises it works while both numbers are in use.
--
-- Takes
--   lines   list    the queue (lua/permits/semaphore/queues.lua)
--   expiry  ZSET    waiters' deadlines
--   deaf    list    clients that nobody hears, each `true`
--   mine?   string  lua/shared/told.lua
--   asks?   ZSET    the same
--   now     ms      the server's time
-- Changes
--   taken   number  with what they want
--   left    number  how many more may be looked at
-- Gives
--   chosen  list     their claims, in the order of the queue, which they have left
--   leases  list     how long each of them wants to hold, ms
--   nobody  boolean  the queue is empty
-- Constants
--   MOST_ADMITTED = 250  waiters looked at, by one call
chosen, leases = {}, {}
local queue = lines[1]
local first, fits = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES'), true
while first[1] and fits and left > 0 do
  local claim = first[1]
  -- include: told
  -- include: alive { ticket = first[2], missed = not told and deaf[claim:sub(1, CLIENT_END)] }
  if alive then
    local wants, of = claim:match(WANTS, TERMS_AT)
    fits = taken + wants <= of + 0
    if fits then
      taken = taken + wants
      chosen[#chosen + 1], leases[#chosen + 1] = claim, lease
    end
  end
  if fits then
    left = left - 1
    redis.call('ZREM', queue, claim)
    first = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')
  end
end
nobody = not first[1]
