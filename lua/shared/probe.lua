-- probe: finds out whether the first waiter is dead, if it keeps others waiting: some permits are free, but fewer than
-- it wants. The waiters of a dead client are then passed over (I4). A live waiter receives a message that changes
-- nothing.
--
-- Takes
--   client   string   the client that sends this heartbeat
--   ttl      ms       the waiters' own expiry
--   taken    number   what all holds take together
--   lock     HASH     the lock
--   lines    ZSETs   the queues of the fair waiters
--   deadlines ZSET    see lua/shared/live.lua
--   now      ms       the server's time
-- Gives
--   deaf     list     the clients that receive no message, each with the value `true`
deaf = {}
local first = taken > 0 and redis.call('ZRANGE', lines[1], 0, 0)[1]
local head = first and first:sub(1, CLIENT_END)
if first and head ~= client then
  local wants, of = first:match(WANTS, TERMS_AT)
  if taken < of + 0 and taken + wants > of + 0 then
    -- include: send { client = head, message = 'ends ' .. ttl .. ' ' .. lock }
    deaf[head] = reached == 0
  end
end
