-- settle: decides anew whether a group may be next, after its first waiter or the permits of its holds have changed.
--
-- This is start-time fair queuing. Each grant has a start tag and a finish tag: finish = start + permits / weight. The
-- virtual time is the start tag of the last grant. The next job of a group starts at the group's last finish tag, or at the
-- virtual time if that is later. So a group that had nothing to do, or was full, has saved nothing up (I3). The ZSET `turns`
-- has the first waiters of all groups that are not full, by the start tags of the next jobs of these groups. Equal tags are
-- in the order of tickets, because the member is "<ticket><claim>". The first waiter of a full group is not in `turns`, so
-- nobody waits for it. lua/permits/semaphore/groups/choose.lua admits the first waiter of the first group. No script walks the groups.
--
-- The hash of the lock has the permits that a group's holds take, in the field ":<group>", and the sum of these fields in
-- `grouped`. So if Redis loses the holds, it loses these numbers too, and no limit is ever exceeded (I1). All else may be
-- lost without harm, and heartbeats restore it. It is in the HASH `shares`: "f<group>", the last finish tag; "w<group>",
-- the weight, if anybody gave one; "l<group>", the limit in the newest call, or NO_LIMIT; "n<group>", its number; "s<group>", its member of `turns`;
-- "t<id>", the ticket of a waiter; `v`, the virtual time; `top`, the largest finish tag of a group.
--
-- A group that has neither holds nor waiters is remembered if its finish tag is ahead, or if it has a weight. The time at
-- which it became idle is in `turns` too, as ":<group>" behind all waiters, so that the group is forgotten after MEMORY
-- (lua/permits/semaphore/groups/mark.lua).
--
-- Takes
--   group      string   the group; empty: the waiters without one
--   adds       number   how many permits the holds of the group take more than before
--   refund     boolean  a grant was not made after all, so the group gets its finish tag back
--   given      string   the weight in the newest call of the group; empty: it is as it was
--   lock       HASH    the lock
--   deadlines  ZSET    see lua/shared/live.lua
--   queue      ZSET    the waiters without a group, by ticket
--   waiting    ZSET    see lua/permits/semaphore/groups/queues.lua
--   turns      ZSET    see lua/permits/semaphore/groups/settle.lua
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
--   now        ms      the server's time
-- Constants
--   IDLE = 8000000000000000  what the times of idle groups in `turns` have more than others, ms; larger than all tags
--   MOST_EXPIRED = 250        expired waiters that are removed at once, at most
local known = redis.call('HMGET', shares, 'f' .. group, 'w' .. group, 's' .. group, 'v', 'top', 'n' .. group)
local finish, weight, stands = (known[1] or 0) + 0, (known[2] or 1) + 0, known[3]
local virtual = tonumber(known[4] or nil)
if not virtual then
  virtual = (redis.call('ZRANGE', turns, 0, 0, 'WITHSCORES')[2] or 0) + 0
  if virtual >= IDLE then virtual = 0 end
end
if given ~= '' and given + 0 ~= weight then
  weight = given + 0
  redis.call('HSET', shares, 'w' .. group, given)
end

local has = 0
if group ~= '' then
  local held = redis.call('HMGET', lock, ':' .. group, 'grouped')
  has = (held[1] or 0) + adds
  local all = (held[2] or 0) + adds
  if adds ~= 0 and has > 0 then
    redis.call('HSET', lock, ':' .. group, has, 'grouped', all)
  elseif adds ~= 0 then
    redis.call('HDEL', lock, ':' .. group)
    if all > 0 then
      redis.call('HSET', lock, 'grouped', all)
    else
      redis.call('HDEL', lock, 'grouped')
    end
  end
end
if adds > 0 then
  virtual = math.max(virtual, finish)
  finish = virtual + adds / weight
  local top = math.max((known[5] or 0) + 0, group ~= '' and finish or 0)
  local tags = { string.format('%.17g', virtual), string.format('%.17g', finish), string.format('%.17g', top) }
  redis.call('HSET', shares, 'v', tags[1], 'f' .. group, tags[2], 'top', tags[3])
elseif refund then
  finish = finish + adds / weight
  redis.call('HSET', shares, 'f' .. group, string.format('%.17g', finish))
end

local number = known[6] or nil
local head, at, expired
local many = 0
repeat
  -- include: first
  expired = false
  if leader then
    -- include: alive { claim = leader, ticket = turn, missed = nil }
    expired = not alive and many < MOST_EXPIRED
    if expired then
      many = many + 1
      -- include: pop { claim = leader, ticket = turn }
    end
  end
  head, at = leader, turn
until not expired

local room = head
if head and group ~= '' then
  local limit = head:match(GROUP, TERMS_AT)
  room = limit == '' or has + head:match(WANTS, TERMS_AT) <= limit + 0
end
local member = room and at .. head
if stands and stands ~= member then redis.call('ZREM', turns, stands) end
if room then
  redis.call('ZADD', turns, string.format('%.17g', math.max(virtual, finish)), member)
  if stands ~= member then redis.call('HSET', shares, 's' .. group, member) end
elseif stands then
  redis.call('HDEL', shares, 's' .. group)
end
if not head and has == 0 then
  if finish > virtual or weight ~= 1 then
    redis.call('ZADD', turns, string.format('%.0f', IDLE + now), ':' .. group)
  else
    redis.call('HDEL', shares, 'f' .. group, 'w' .. group, 'l' .. group, 'n' .. group)
  end
end
