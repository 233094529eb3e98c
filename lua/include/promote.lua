-- Makes the first live waiter of the fair queue the holder (I3, I4) and tells its inbox. Expects `reason`, the first word
-- of the message, and `mine`. Sets `successor` to the id of the new holder, or to nil: nobody was left, and `queued` is cleared;
-- or `unfinished` is set, because so many were passed over that the server would be held up for too long. Then the next call
-- goes on where this one has ended: nobody holds the lock, and whoever asks for it has to do that first.
--
-- A queue entry is the waiter's claim, and an id begins with the 12 characters that name its client's inbox. The score
-- is the ticket.
--
-- A waiter is passed over, and so dropped, when
--   * its own expiry has passed: its ticket is older than its waiterTtl and no heartbeat has recorded a later deadline;
--   * PUBLISH says that nobody is subscribed to its inbox: its process is gone or cut off. If it lives after all, it
--     joins again with the ticket it had. So the waiters of a crashed process cost a pop each, not a time-out each, and one
--     message for all of them that stand in a row.
--     In a cluster nobody may be subscribed because the slot has just come to this node, and the waiter has not followed it
--     yet. If it lost its place for that, a failover would change the order. So there it is passed over only if it has been
--     heard on this very node (include/place.lua); else it is granted the lock, and finds it by a heartbeat.
-- A waiter whose id begins with `mine` needs no message: the reply of this script tells its client. nil: nobody's does.
--
-- The message stands between the end of the old hold and the write of the new one because its count decides; ZPOPMIN is
-- the first write, and frees memory, so a server at maxmemory still lets the rest through.
-- A PUBLISH that the server refuses (ACL) does not undo the choice: the waiter learns of it by its next heartbeat.
local successor, unfinished, deaf
local left = 250
repeat
  left = left - 1
  local first = redis.call('ZPOPMIN', queue)
  local claimed = first[1]
  if not claimed then
    redis.call('HDEL', lock, 'queued')
    queued = nil
    --[[cluster
    redis.call('UNLINK', expiry)
    --]]
    break
  end
  local waiter, client = string.sub(claimed, 1, 28), string.sub(claimed, 1, 12)
  local length, ttl, headStart = string.match(claimed, '^ %d+ (%d+) (%d+) (%d+) ', 29)
  local live = client ~= deaf and (first[2] + headStart) / 1000 + ttl >= now
  if not live and client ~= deaf then
    local deadline = redis.call('ZSCORE', expiry, waiter)
    live = deadline and tonumber(deadline) >= now
  end
  if live then
    -- include: token
    local offered = string.format('%.0f', clock)
    local heard = 1
    if not mine or string.sub(waiter, 1, #mine) ~= mine then
      heard = redis.pcall('PUBLISH', inbox .. client, reason .. ' ' .. waiter .. ' ' .. offered .. ' ' .. lock)
      --[[cluster
      if heard == 0 then
        local here = redis.pcall('CLUSTER', 'MYID')
        local noted = not here.err and redis.call('ZSCORE', expiry, client .. '@' .. here)
        if not noted or tonumber(noted) < now then heard = nil end
      end
      --]]
    end
    if heard ~= 0 then
      successor, token = waiter, offered
      local block
      -- include: grant
    else
      deaf = client
    end
  end
  unfinished = left == 0 and not successor
until successor or unfinished
