-- live: the end of one hold's own lease.
--
-- Each hold has a lease of its own. So when a process dies, its hold ends with the lease of that hold, even if other
-- processes of the same owner re-enter in the meantime (I4). While the holder has more than one hold, their ends are
-- the scores of a ZSET. So the latest end is found without a walk over all holds.
--
-- Takes
--   id      string  the hold
--   deadlines ZSET  for each hold of a holder that has re-entered, the end of its lease, ms; for a waiter that has sent a heartbeat, WAITER plus its deadline, ms
--   holds?  string  see lua/shared/state.lua
--   hold?   string  see lua/shared/holder.lua
--   ends?   ms      see lua/shared/ends.lua
-- Gives
--   lives?  ms      by the server's clock; absent: the holder has no such hold
-- Constants
--   WAITER = 10000000000000  what the deadlines of waiters have more than those of holds, ms; so the holds have the first ranks
if holds then
  lives = tonumber(redis.call('ZSCORE', deadlines, id) or nil)
  if lives and lives >= WAITER then lives = nil end
elseif hold == id then
  lives = ends
end
