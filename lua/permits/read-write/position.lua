-- position: the place of a waiter in the order of grants, as far as it is known now. If a writer holds, the readers are
-- next, then the writers. Otherwise the first writer is next, then the readers, then the other writers.
--
-- Takes
--   claim     string  the waiter's claim
--   line      ZSET    its queue
--   lines     ZSETs  see lua/permits/read-write/queues.lua
--   taken     number  what all holds take together
-- Gives
--   position  number  counted from 1
position = redis.call('ZRANK', line, claim) + 1
local readers = lines[2]
if line == readers then
  if taken < ALL_PERMITS then position = position + 1 end
elseif taken >= ALL_PERMITS or position > 1 then
  position = position + redis.call('ZCOUNT', readers, '-inf', '+inf')
end
