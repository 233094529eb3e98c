-- promote: makes the first live waiter of the fair queue the holder (I3, I4) and tells its inbox.
--
-- So many may be passed over that the server would be held up for too long. Then the next call goes on where this one has
-- ended: nobody holds the lock, and whoever asks for it has to do that first.
--
-- A queue entry is the waiter's claim, and an id begins with the 12 characters that name its client's inbox. The score
-- is the ticket.
--
-- A waiter is passed over, and so dropped, when
--   * its own expiry has passed: its ticket is older than its waiterTtl and no heartbeat has recorded a later deadline;
--   * PUBLISH says that nobody is subscribed to its inbox: its process is gone or cut off. If it lives after all, it
--     joins again with the ticket it had. So the waiters of a crashed process cost a pop each, not a time-out each, and one
--     message for all of them that stand in a row.
--     A waiter that needs no message is not dropped for that: its client is asking.
--     In a cluster nobody may be subscribed because the slot has just come to this node, and the waiter has not followed it
--     yet. If it lost its place for that, a failover would change the order. So there it is passed over only if it has been
--     heard on this very node (lua/shared/send.lua); else it is granted the lock, and finds it by a heartbeat.
--
-- The queue was on this node when the script began (lua/shared/keys.lua). If it has been emptied here, and its slot is moving away, Redis
-- would look for it on the other node, and the script would end, after some of its writes. That it is refused then says that it is empty.
--
-- The message stands between the end of the old hold and the write of the new one because its count decides; ZPOPMIN is
-- the first write, and frees memory, so a server at maxmemory still lets the rest through.
-- A PUBLISH that the server refuses (ACL) does not undo the choice: the waiter learns of it by its next heartbeat.
--
-- Takes
--   reason      string   the first word of the message
--   mine?       string   how ids begin that need no message: the reply of this script tells their client; absent: none does
--   lock        HASH     the lock
--   queue       ZSET     fair waiters by ticket
--   expiry      ZSET     waiters' deadlines
--   now         ms       the server's time
--   micros      µs       the same
--   stamp       string   the same
-- Changes
--   holder      string   the new one, if there is a successor
--   token       string   its token
--   ends        ms       the end of its lease
--   hold        string   its id
--   queued      ms       absent where nobody was left
--   clock       µs       up to the token
--   keep        ms       the lock's key may live longer
-- Gives
--   successor?  string   the id of the new holder; absent: nobody was left, or it is unfinished
--   unfinished? boolean  so many were passed over that the next call has to go on
-- Constants
--   MOST_PASSED_OVER = 250  waiters, by one call
local deaf
local left = MOST_PASSED_OVER
--[[cluster
local popped
--]]
repeat
  left = left - 1
  local first
  --[[cluster
  first, popped = popped and redis.pcall('ZPOPMIN', queue), true
  --]]
  first = first or redis.call('ZPOPMIN', queue)
  local claim = first[1]
  if not claim then
    redis.call('HDEL', lock, 'queued')
    queued = nil
    --[[cluster
    redis.call('UNLINK', expiry)
    --]]
    break
  end
  local waiter, client = claim:sub(1, ID_END), claim:sub(1, CLIENT_END)
  local told = mine and waiter:sub(1, #mine) == mine
  -- include: alive { ticket = first[2], missed = client == deaf and not told }
  if alive then
    -- include: clock
    -- include: send { message = not told and reason .. ' ' .. waiter .. ' ' .. tick .. ' ' .. lock }
    if reached ~= 0 then
      successor, hold, token = waiter, waiter, tick
      -- include: grant
    else
      deaf = client
    end
  end
  unfinished = left == 0 and not successor
until successor or unfinished
