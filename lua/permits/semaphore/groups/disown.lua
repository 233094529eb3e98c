-- disown: the group of a hold that has ended has room again, so its turn may come (I4).
--
-- Takes
--   record     string  the record of the hold
--   lock       HASH    the lock
--   deadlines  ZSET    see lua/shared/live.lua
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
local claim = record:sub(CLAIM_AT)
-- include: group
if group ~= '' then
  -- include: time
  -- include: settle { adds = -claim:match(WANTS, TERMS_AT), refund = false, given = '' }
end
