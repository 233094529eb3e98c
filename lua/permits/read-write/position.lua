-- position: the place of a waiter, by the order of grants as it stands: where a writer holds, readers are next; else the first writer, and
-- the readers behind it.
--
-- Takes
--   claim     string  of the waiter
--   line      ZSET    its queue
--   lines     list    lua/permits/read-write/queues.lua
--   taken     number  what all holds take together
-- Gives
--   position  number  from 1
position = redis.call('ZRANK', line, claim) + 1
local readers = lines[2]
if line == readers then
  if taken < ALL_PERMITS then position = position + 1 end
elseif taken >= ALL_PERMITS or position > 1 then
  position = position + redis.call('ZCOUNT', readers, '-inf', '+inf')
end
