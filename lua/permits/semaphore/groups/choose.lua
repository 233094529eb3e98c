-- choose: selects the waiters to admit: the first waiter of the group whose turn it is, until the next one does not fit.
--
-- lua/permits/semaphore/groups/settle.lua keeps the groups in the order of their turns, and leaves out those that are full.
-- If the first waiter of the first group wants more than is free, nobody passes it.
--
-- Takes
--   lock       HASH    the lock
--   deadlines  ZSET    see lua/shared/live.lua
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
--   deaf       list     the clients that receive no message, each with the value `true`
--   mine?      string   see lua/permits/semaphore/groups/told.lua
--   now        ms      the server's time
-- Changes
--   grouped    boolean  the semaphore has groups
--   taken      number   includes what the chosen waiters want
--   left       number   how many more waiters this call may look at
-- Gives
--   chosen     list     the claims of the chosen waiters, in the order of their turns; they have been removed from the queues
--   leases     list     the lease that each of them wants, ms
--   nobody     boolean  the queues are empty
-- Constants
--   MOST_ADMITTED = 250  waiters that one call looks at, at most
chosen, leases = {}, {}
if not grouped then
  grouped = true
  -- include: settle { group = '', adds = 0, refund = false, given = '' }
end
local fits, first = true, nil
repeat
  -- include: next
  first = head
  if head then
    local ticket, claim, adds = head:sub(1, TOKEN_END), head:sub(TOKEN_END + 1), 0
    -- include: group
    -- include: told
    -- include: alive { missed = not told and deaf[claim:sub(1, CLIENT_END)] }
    local wants, of = claim:match(WANTS, TERMS_AT)
    fits = not alive or taken + wants <= of + 0
    if fits then
      left = left - 1
      redis.call('ZREM', turns, head)
      -- include: pop
      if alive and gone then
        adds = wants + 0
        taken = taken + wants
        chosen[#chosen + 1], leases[#chosen + 1] = claim, lease
      end
      -- include: settle { refund = false, given = '' }
    end
  end
until not first or not fits or left == 0
nobody = not first and redis.call('EXISTS', queue, waiting) == 0
