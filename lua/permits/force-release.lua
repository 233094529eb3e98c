-- force-release: take the permits from all holders, or from one, and admit the next waiters.
--
-- Each request has a name, and the lock stores the name of the latest request. So if the answer is lost and the request
-- is repeated, the second call does not take the permits from the next holders (I5). While a request needs several
-- calls, the lock also stores the last token that was issued before the first of them. Holds with larger tokens have
-- begun since then, and are not ended.
-- The client of each holder receives a message in its inbox that the hold may be lost. The client then asks Redis
-- whether the hold is lost (I8).
--
-- KEYS
--   lock        HASH    the lock
--   deadlines   ZSET    the ends of holds, and waiters' deadlines (lua/README.md)
--   queue?      ZSET    fair waiters by ticket
--   readers?    ZSET    only of a read-write lock: the readers among them, who have a queue of their own
--   waiting?    ZSET    only of a semaphore: the waiters with a group (lua/groups.lua)
--   turns?      ZSET    only of a semaphore: the groups whose turn may come
--   shares?     HASH    only of a semaphore: what the groups have had
--   none?       string  only in a cluster: a key that never exists (lua/README.md)
-- ARGV
--   request     string  an unguessable name for this request only
--   only?       string  the id of the holder that loses its permits; absent: all holders
-- Replies
--   released    the holders have lost their permits
--   unfinished  the call has ended as many holds, or looked at as many waiters, as one call may; call again until the reply is `released` or `free`, then call lua/permits/sweep.lua
--   free        there was no holder, or `only` was not a holder
-- Invariants: I4 I5 I8

--[[cluster
if not none then return redis.error_reply('ERR non local key') end
--]]
-- functions
local s, mark = readPermits(lock, queue, deadlines, readers)
if turns and mark and not s.queued then
  -- functions
  withGroups(s, waiting, turns, shares, mark)
end

local forced = redis.call('HMGET', lock, 'forced')[1] or ''
if forced == request then return 'released' end
local before = forced:sub(1, #request) == request and forced:sub(#request + 2)
local more, word = lapse(s, mark)
local one = only
if only and not redis.call('HMGET', lock, only)[1] then
  -- The hold may be one that is retained (lua/permits/release.lua).
  one = KEPT .. only:sub(2)
end
local found = before or s.taken > 0 and (not one or redis.call('HMGET', lock, one)[1])
if not found and not s.queued and word ~= 'expiry' then return 'free' end

if found then
  before = before or string.format('%.0f', s.clock)
  local from, ended, lost = 0, 0, nil
  repeat
    local last = math.min(from + MOST_FORCED, redis.call('ZCOUNT', deadlines, '-inf', '(' .. WAITER)) - 1
    lost = one and { one } or last >= from and redis.call('ZRANGE', deadlines, from, last) or {}
    local records = lost[1] and redis.call('HMGET', lock, (table.unpack or unpack)(lost))
    for i, id in ipairs(lost) do
      local record = records[i]
      if not record or record:sub(1, TOKEN_END) > before or ended == MOST_FORCED then
        from = from + 1
      else
        ended = ended + 1
        giveUp(s, id, record, nil)
        local text = 'lost ' .. id .. ' ' .. record:sub(1, TOKEN_END) .. ' ' .. lock
        redis.pcall('PUBLISH', INBOX .. id:sub(1, CLIENT_END), text)
      end
    end
  until one or ended == MOST_FORCED or #lost < MOST_FORCED
  redis.call('HSET', lock, 'forced', ended == MOST_FORCED and request .. ' ' .. before or request)
  if ended == MOST_FORCED then return 'unfinished' end
end
-- Waiters are admitted even if no hold was taken away above. Leases may have lapsed, and the permits of those holds go
-- to the waiters.
local _, unfinished = admit(s, found and 'handoff' or word, nil, nil, nil, {})
if not found then return 'free' end
return (unfinished or more) and 'unfinished' or 'released'
