-- choose: who is admitted to a read-write lock: phase-fair (Brandenburg and Anderson, "Spin-based reader-writer synchronization for
-- multiprocessor real-time systems", 2010). Readers' turns and writers' turns alternate while both wait, so a reader waits for one
-- writer's turn at most, and writers take turns by their tickets (I3).
--
--   1. A writer holds: nobody is admitted.
--   2. A writer's turn has ended, or no writer waits: all readers that wait are admitted.
--   3. Nobody holds: the first writer is.
--
-- A reads, B waits to write, C waits to read: C is not let in beside A, and B is next. B writes, C and D wait to read, E to write: C and
-- D are next, together, and E after them.
--
-- A writer that is chosen begins its turn only when it has heard of it (lua/permits/read-write/begin.lua).
--
-- Takes
--   lock     HASH     the lock
--   lines    list     the two queues (lua/permits/read-write/queues.lua)
--   expiry   ZSET     waiters' deadlines
--   deaf     list     clients that nobody hears, each `true`
--   mine?    string   lua/shared/told.lua
--   asks?    ZSET     the same
--   now      ms       the server's time
-- Changes
--   taken    number   with what they want
--   left     number   how many more may be looked at
-- Gives
--   chosen   list     their claims, which have left the queue
--   leases   list     how long each of them wants to hold, ms
--   nobody   boolean  both queues are empty
-- Constants
--   MOST_ADMITTED = 2000     waiters looked at, by one call: what the server takes no more than a few ms for
--   READERS_TURN = 'r'       field `turn`: readers were the last to be admitted
--   WRITERS_TURN = 'w'       a writer was
--   ALL_PERMITS = 1000000000  what a writer wants; a reader wants one, of one less (src/kinds/permits/read-write.ts)
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
    left = left - #popped / 2
    for i = 1, #popped, 2 do
      local claim = popped[i]
      -- include: told
      -- include: alive { ticket = popped[i + 1], missed = not told and deaf[claim:sub(1, CLIENT_END)] }
      if alive then
        taken = taken + 1
        chosen[#chosen + 1], leases[#chosen + 1] = claim, lease
      end
    end
    -- Those who are left are still to have this turn.
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
