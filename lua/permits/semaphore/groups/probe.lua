-- probe: finds out whether the waiter whose turn it is is dead, if it keeps others waiting: some permits are free, but
-- fewer than it wants. The waiters of a dead client are then passed over (I4). A live waiter receives a message that
-- changes nothing.
--
-- Takes
--   client     string   the client that sends this heartbeat
--   ttl        ms       the waiters' own expiry
--   taken      number   what all holds take together
--   lock       HASH    the lock
--   deadlines  ZSET    see lua/shared/live.lua
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
--   now        ms      the server's time
-- Gives
--   deaf       list     the clients that receive no message, each with the value `true`
deaf = {}
-- include: next
if head and taken > 0 then
  local claim = head:sub(TOKEN_END + 1)
  local ahead = claim:sub(1, CLIENT_END)
  local wants, of = claim:match(WANTS, TERMS_AT)
  if ahead ~= client and taken < of + 0 and taken + wants > of + 0 then
    -- include: send { client = ahead, message = 'ends ' .. ttl .. ' ' .. lock }
    deaf[ahead] = reached == 0
  end
end
