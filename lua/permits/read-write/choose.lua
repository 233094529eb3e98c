-- choose: selects the waiters to admit to a read-write lock. The rule is phase-fair (Brandenburg and Anderson,
-- "Spin-based reader-writer synchronization for multiprocessor real-time systems", 2010): while readers and writers
-- wait, readers' turns and writers' turns alternate. So a reader waits for one writer's turn at most. Among themselves,
-- writers go in the order of their tickets (I3).
--
--   1. If a writer holds, nobody is admitted.
--   2. If a writer's turn has ended, or no writer waits, all waiting readers are admitted.
--   3. If nobody holds, the first writer is admitted.
--
-- Example: A reads, B waits to write, C waits to read. C is not admitted beside A; B is next. While B writes, C and D
-- wait to read and E waits to write. C and D are next, together, and then E.
--
-- A writer's turn begins only after the chosen writer has received its message (lua/permits/read-write/begin.lua).
--
-- Takes
--   lock     HASH     the lock
--   lines    ZSETs   the two queues (lua/permits/read-write/queues.lua)
--   deadlines ZSET    see lua/shared/live.lua
--   deaf     list     the clients that receive no message, each with the value `true`
--   mine?    string   see lua/shared/told.lua
--   asks?    ZSET     see lua/shared/told.lua
--   now      ms       the server's time
-- Changes
--   taken    number   includes what the chosen waiters want
--   left     number   how many more waiters this call may look at
-- Gives
--   chosen   list     the claims of the chosen waiters; they have been removed from their queue
--   leases   list     the lease that each of them wants, ms
--   nobody   boolean  both queues are empty
-- Constants
--   MOST_ADMITTED = 2000     waiters that one call looks at, at most; the server needs no more than a few ms for them
--   READERS_TURN = 'r'       the value of the field `turn` after readers were admitted last
--   WRITERS_TURN = 'w'       the value of the field `turn` after a writer was admitted last
--   ALL_PERMITS = 1000000000  the permits that a writer wants; a reader wants 1, and src/kinds/permits/read-write.ts explains how this keeps readers and writers apart
chosen, leases = {}, {}
local queue, readers = lines[1], lines[2]
local turn = redis.call('HMGET', lock, 'turn')[1]
local latest = turn
if taken >= ALL_PERMITS then
  latest = WRITERS_TURN
else
  local first, writer, wanted = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES'), nil, nil
  while first[1] and not writer and left > 0 do
    local claim = first[1]
    -- include: told
    -- include: alive { ticket = first[2], missed = not told and deaf[claim:sub(1, CLIENT_END)] }
    if alive then
      writer, wanted = claim, lease
    else
      left = left - 1
      redis.call('ZREM', queue, claim)
      first = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')
    end
  end
  if left > 0 and (not writer or turn == WRITERS_TURN) then
    local popped = redis.call('ZPOPMIN', readers, left)
    left = left - math.floor(#popped / 2)
    for i = 1, #popped, 2 do
      local claim = popped[i]
      -- include: told
      -- include: alive { ticket = popped[i + 1], missed = not told and deaf[claim:sub(1, CLIENT_END)] }
      if alive then
        taken = taken + 1
        chosen[#chosen + 1], leases[#chosen + 1] = claim, lease
      end
    end
    -- If this call has reached its limit, some readers may still be queued. Then `turn` keeps its value, so that the
    -- next call admits them too.
    if taken > 0 and left > 0 then latest = READERS_TURN end
  end
  if writer and taken == 0 and left > 0 then
    redis.call('ZREM', queue, writer)
    taken, left = ALL_PERMITS, left - 1
    chosen, leases = { writer }, { wanted }
  end
end
if latest ~= turn then redis.call('HSET', lock, 'turn', latest) end
nobody = redis.call('EXISTS', queue) == 0 and redis.call('EXISTS', readers) == 0
