-- tell: tells waiters when a lease ends, because it ends before their next heartbeat (lua/shared/tell.lua). Of the waiters
-- with groups, only the one whose turn is next needs the message.
--
-- Takes
--   lasts      ms      the time left of the lease
--   lock       HASH    the lock
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
redis.pcall('PUBLISH', lock .. ':unlock', 'ends ' .. lasts)
-- include: next
if head then redis.pcall('PUBLISH', INBOX .. head:sub(TOKEN_END + 1, TOKEN_END + CLIENT_END), 'ends ' .. lasts .. ' ' .. lock) end
