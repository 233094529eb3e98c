-- Makes the first live waiter of the fair queue the holder (I3, I4) and tells its inbox.
--
-- A queue entry is everything a grant needs: "<id> <lease ms> <waiterTtl ms> <headStart µs> <owner bytes> <owner><label>",
-- and an id begins with the 12 characters that name its client's inbox. The score is the ticket.
--
-- A waiter is passed over, and so dropped, when
--   * its own expiry has passed: its ticket is older than its waiterTtl and no heartbeat has recorded a later deadline;
--   * PUBLISH says that nobody is subscribed to its inbox: its process is gone or cut off. If it lives after all, it
--     joins again with the ticket it had. So the waiters of a crashed process cost a pop each, not a time-out each.
-- A waiter whose id begins with `mine` needs no message: the reply of this script tells its client. nil: nobody's does.
--
-- The message stands between the end of the old hold and the write of the new one because its count decides; ZPOPMIN is
-- the first write, and frees memory, so a server at maxmemory still lets the rest through.
-- A PUBLISH that the server refuses (ACL) does not undo the choice: the waiter learns of it by its next heartbeat.
-- Returns the id of the new holder, or nil when nobody was left (then `queued` is cleared).
local function promote(reason, mine)
  while true do
    local first = redis.call('ZPOPMIN', queue)
    local entry = first[1]
    if not entry then
      redis.call('HDEL', lock, 'queued')
      queued = nil
      return nil
    end
    local id, lease, ttl, headStart, bytes, rest = string.match(entry, '^(%S+) (%d+) (%d+) (%d+) (%d+) (.*)$')
    local live = (first[2] + headStart) / 1000 + ttl >= now
    if not live then
      local deadline = redis.call('ZSCORE', expiry, id)
      live = deadline and tonumber(deadline) >= now
    end
    if live then
      local newToken = digits(math.max(clock + 1, micros))
      local heard = 1
      if not mine or string.sub(id, 1, #mine) ~= mine then
        heard = redis.pcall('PUBLISH', inbox .. string.sub(id, 1, 12), reason .. ' ' .. id .. ' ' .. newToken .. ' ' .. lock)
      end
      if heard ~= 0 then
        grant(id, string.sub(rest, 1, bytes), string.sub(rest, bytes + 1), tonumber(lease))
        return id
      end
    end
  end
end
