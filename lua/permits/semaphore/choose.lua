-- choose: selects the waiters to admit to a semaphore: from the head of the queue, until the next one does not fit.
--
-- Strictly first come, first served: if the head wants more than is free, no other waiter passes it. A claim says how
-- many permits the semaphore has, and this number decides whether the claim fits. So while a deployment raises the
-- number, clients with the old and the new number work side by side.
--
-- Takes
--   lines   ZSETs  the queue (lua/permits/semaphore/queues.lua)
--   deadlines ZSET  see lua/shared/live.lua
--   deaf    list    the clients that receive no message, each with the value `true`
--   mine?   string  see lua/shared/told.lua
--   asks?   ZSET    see lua/shared/told.lua
--   now     ms      the server's time
-- Changes
--   taken   number  includes what the chosen waiters want
--   left    number  how many more waiters this call may look at
-- Gives
--   chosen  list     the claims of the chosen waiters, in queue order; they have been removed from the queue
--   leases  list     the lease that each of them wants, ms
--   nobody  boolean  the queue is empty
-- Constants
--   MOST_ADMITTED = 250  waiters that one call looks at, at most
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
