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
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
--   now        ms      the server's time
-- Gives
--   deaf       list     the clients that receive no message, each with the value `true`
deaf = {}
local next = taken > 0 and redis.call('ZRANGEBYSCORE', turns, 0, '+inf', 'LIMIT', 0, 1)[1]
if next then
  local group = next:sub(TOKEN_END + 1)
  -- include: first
  local head = leader and leader:sub(1, CLIENT_END)
  if leader and head ~= client then
    local wants, of = leader:match(WANTS, TERMS_AT)
    if taken < of + 0 and taken + wants > of + 0 then
      -- include: send { client = head, message = 'ends ' .. ttl .. ' ' .. lock }
      deaf[head] = reached == 0
    end
  end
end
