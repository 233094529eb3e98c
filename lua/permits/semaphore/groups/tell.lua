-- tell: tells waiters when a lease ends, because it ends before their next heartbeat (lua/shared/tell.lua). Of the waiters
-- with groups, only the one whose turn is next needs the message.
--
-- Takes
--   lasts      ms      the time left of the lease
--   lock       HASH    the lock
--   queue      ZSET    one of the queues
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
redis.pcall('PUBLISH', lock .. ':unlock', 'ends ' .. lasts)
local next = redis.pcall('ZRANGEBYSCORE', turns, 0, '+inf', 'LIMIT', 0, 1)[1]
if next then
  local group = next:sub(TOKEN_END + 1)
  -- include: first
  if leader then redis.pcall('PUBLISH', INBOX .. leader:sub(1, CLIENT_END), 'ends ' .. lasts .. ' ' .. lock) end
end
