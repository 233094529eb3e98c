-- What the scripts of all kinds of lock share: the form of a claim, the server's time, the clock of a lock, the life of its
-- keys, and its waiters.
--
-- A function takes one table, the state `s` of the lock, which the script has read: the keys `lock`, `queue` and
-- `deadlines`; `clock`, the last ticket or token (µs); `queued`, the time until which the keys of the queue live (ms;
-- absent: nobody is queued); `keep`, the time at which the lock's key expires (ms); `pace`; and the server's time as
-- `stamp` (µs as text, 16 digits), `micros` (µs) and `now` (ms).
--
-- A claim is one text with everything that a grant needs. It is the argument of `acquire`, and the entry in the queue:
--   "<id> <owner bytes> <lease ms> <waiterTtl ms> <headStart µs> <owner><label>"
-- If the call has a `minHold`, the lease has a suffix, and is the longer of the two:
--   "<lease ms>m<minHold ms>,<the call's own lease ms>"
-- An id has 28 characters; the first 12 name its client's inbox. If the number of owner bytes is 0, the caller has no
-- name, and its owner is the id itself. The part of a claim after its id is called its terms. Clients write and read claims
-- with src/kinds/claim.ts.
--
-- Constants
--   CLIENT_END = 12                                 the last character of the client's part of an id
--   ID_END = 28                                     the last character of the id, which is at the start of a claim
--   TERMS_AT = 29                                   the first character of the terms, to which the patterns below apply
--   TOKEN_END = 16                                  the last character of a token or ticket at the start of a text
--   NAMELESS = ' 0 '                                the first characters of the terms if the caller has no name
--   NAMELESS_END = 31                               the last of those characters
--   NAMES = '^ (%d+) %S+ %d+ %d+ (.*)$'             owner bytes; owner and label
--   LEASE = '^ %d+ (%d+)'                           lease
--   OWN_LEASE = '^ %d+ %d+m%d+,(%d+)'               the call's own lease; absent without a `minHold`
--   MIN_HOLD = '^ %d+ %d+m(%d+)'                    minHold; absent if the call gave none
--   MIN_HOLD_TERM = 'm%d+,%d+'                      the suffix of the lease
--   WAITING = '^ %d+ %S+ (%d+) (%d+) '              waiterTtl, headStart
--   LEASE_AND_WAITING = '^ %d+ (%d+)%S* (%d+) (%d+) '  lease, waiterTtl, headStart
--   KEPT = '!'                 the first character of the id of a hold that has ended, but is retained for its `minHold`; no id begins with it
--   WAITER = 10000000000000    what the deadlines of waiters have more than those of holds, ms; so the holds have the first ranks
--   LINGER = 5000              ms for which a lapsed lease can still be found
--   NO_CLOCK = 0               the value of `clock` if the lock's key is new or was lost
--   LIFE_UNKNOWN = 0           the value of `queued` if there is a queue, but the record of its keys' life was lost
--   NO_TICKET = '0'            the ticket in a refusal of a caller that is not queued
--   NOT_QUEUED = 0             the position in a refusal of a caller that is not queued
--   GRANTED_ANEW = -1          stands in place of a ttl in the reply to a renewal
--   MOST_TRIMMED = 500         deadlines removed by one call, at most
--   LAST_TRIMMED_AT = 499      the rank of the last deadline that one call removes
--   MOST_LOOKED_AT = 32        waiters of a long queue that a call with a limit looks at
--   COUNTS = 64                more than the number of holds in a pace can be
--   MOST_COUNTED = 32          the largest number of those holds
--   WEIGHT = 16                the newest hold counts for this part of the mean at least
--   MOST_SPENT = 100000000000000  µs; a larger number would lose digits

-- The server's time: `stamp`, `micros`, `now`. Scripts use no other clock, because a client's clock may be wrong, may jump
-- or may stop. Dragonfly returns numbers, Redis texts. `now` is rounded down, and a lease that ends exactly then is still
-- live, so no lease ends early (I1).
local function readTime()
  local time = redis.call('TIME')
  local second, rest = time[1], time[2] .. ''
  local stamp = #rest == 6 and second .. rest or second .. ('00000' .. rest):sub(-6)
  local micros = stamp + 0
  return stamp, micros, math.floor(micros / 1000)
end

-- The next value of the clock that issues tickets and fencing tokens, as text. The clock never repeats a value or goes back
-- while the lock's key lives, and a new value is never behind the time of day. If the key is lost, the clock starts again
-- from the time of day, above every value that it ever issued (I2). To format a number costs more than a Redis command, so
-- Redis's own text of the time is used if it can be.
local function tick(s)
  if s.clock < s.micros then
    s.clock = s.micros
    return s.stamp
  end
  s.clock = s.clock + 1
  return string.format('%.0f', s.clock)
end

-- Makes the lock's key live until LINGER after the deadline, and until MEMORY after this call and after the last ticket or
-- token. So a waiter that looks when a lease has lapsed still finds its holder. A token may be later than the present time,
-- if the server's clock was ahead for a while. If the key expired before that time, the next token would be smaller (I2).
-- Returns the new expiry, which the caller has to set and to record; nil if the present one suffices. The life grows in
-- steps of a tenth of MEMORY, the client's `tokenMemory` (ms), so most calls need no command to prolong it.
local function keepUntil(s, deadline)
  local now, clock, needed = s.now, s.clock, deadline + LINGER
  local least = MEMORY + (now * 1000 < clock and math.ceil(clock / 1000) or now)
  if needed < least then needed = least end
  if s.keep >= needed then return nil end
  s.keep = needed + math.floor(MEMORY / 10)
  return s.keep
end

-- Shortens the life of a free lock's key to MEMORY from now, if a long lease made it much longer. With MEMORY 0, Redis
-- removes the key at once. So this must be the last write of a script: a later one would make a key without expiry.
local function shorten(lock, keep, clock)
  if keep - clock / 1000 > MEMORY * 1.1 + 1 then
    local _, _, now = readTime()
    local free = math.max(now, math.ceil(clock / 1000)) + MEMORY
    if keep - free > MEMORY / 10 then
      redis.call('HDEL', lock, 'keep')
      redis.call('PEXPIREAT', lock, free)
    end
  end
end

-- Sends a message to a client's inbox. Returns how many subscribers received it; 0 means that the client is gone. In a
-- cluster, the slot may have just moved to this node, and the client may not have subscribed here yet. So there, 0 is
-- returned only if there is a record that the client was subscribed on this very node before (`notePlace`).
local function send(s, client, message)
  local reached = redis.pcall('PUBLISH', INBOX .. client, message)
  --[[cluster
  if reached == 0 then
    local here = redis.pcall('CLUSTER', 'MYID')
    local noted = not here.err and tonumber(redis.call('ZSCORE', s.deadlines, client .. '@') or nil)
    if not noted or noted < WAITER + s.now or noted % 1 ~= tonumber(here:sub(1, 2), 16) / 256 then reached = nil end
  end
  --]]
  return reached
end

-- Records in `deadlines` that a client is subscribed to its inbox on this node, for `ttl`. The script asks Redis which node
-- it runs on, because the request may have been redirected. There is one record for each client, so that after a failover
-- there and back this node does not find its own old record. The fraction of the time names the node: it is made of the
-- first two digits of the node's id.
--[[cluster
local function notePlace(s, id, ttl, keep)
  local client = id:sub(1, CLIENT_END)
  local listeners = redis.pcall('PUBSUB', 'SHARDNUMSUB', INBOX .. client)
  local here = redis.pcall('CLUSTER', 'MYID')
  if not here.err and (listeners[2] or 0) > 0 then
    redis.call('ZADD', s.deadlines, WAITER + s.now + ttl + tonumber(here:sub(1, 2), 16) / 256, client .. '@')
    redis.call('PEXPIREAT', s.deadlines, keep)
  end
end
--]]

-- Whether a waiter's expiry has not passed: it joined at most its waiterTtl ago, or a heartbeat has recorded a deadline.
-- Returns the lease and the waiterTtl of its claim; nil if it has passed.
local function wantsStill(s, claim, ticket)
  local lease, ttl, headStart = claim:match(LEASE_AND_WAITING, TERMS_AT)
  if (ticket + headStart) / 1000 + ttl >= s.now then return lease, ttl end
  local deadline = redis.call('ZSCORE', s.deadlines, claim:sub(1, ID_END))
  if deadline and deadline - WAITER >= s.now then return lease, ttl end
end

-- Records that a waiter of this queue is there until at least `now + ttl`, and makes the keys live that long (I7). The life
-- of the keys grows in steps of `ttl`, so most joins need no command to prolong it. `fresh`: the key may be new, and without
-- a life.
local function enqueue(s, line, ttl, ticket, fresh)
  if s.queued and s.queued >= s.now + ttl and not fresh then
    redis.call('HSET', s.lock, 'clock', ticket)
    return
  end
  local till = s.now + 2 * ttl
  if not s.queued or s.queued < till then s.queued = till end
  local life = keepUntil(s, s.queued)
  redis.call('HSET', s.lock, 'clock', ticket, 'queued', s.queued, 'keep', s.keep)
  redis.call('PEXPIREAT', line, s.queued)
  if life then redis.call('PEXPIREAT', s.lock, life) end
end

-- How many of a queue's entries from `from` on, `many` of them, are living waiters. The waiter of a dead process stays in
-- the queue until a grant passes it over, and does not count. To look at all would cost too much if many calls are turned
-- away. So some are looked at, from a place that changes from call to call, and of the others the same part is alive.
-- `ticketed`: an entry is "<ticket><claim>".
local function countLiving(s, line, from, many, ticketed)
  local some = many > MOST_LOOKED_AT and s.micros % (many - MOST_LOOKED_AT + 1) or 0
  local entries = redis.call('ZRANGE', line, from + some, from + math.min(many, some + MOST_LOOKED_AT) - 1, 'WITHSCORES')
  local living = 0
  for i = 1, #entries, 2 do
    local claim, ticket = entries[i], entries[i + 1]
    if ticketed then
      claim, ticket = claim:sub(TOKEN_END + 1), claim:sub(1, TOKEN_END)
    end
    if wantsStill(s, claim, ticket) then living = living + 1 end
  end
  return math.floor(many * living / (#entries / 2) + 0.5)
end

-- Removes deadlines that have passed: of waiters with `from` WAITER, of holds with 0. If thousands have passed, one call
-- removes as many as the server can remove quickly. ZREMRANGEBYSCORE runs even if none has passed: a server at maxmemory
-- refuses a script whose first write is HSET or ZADD, and accepts the whole script if its first write is this one.
local function trim(s, from)
  local till = '(' .. from + s.now
  if redis.call('ZCOUNT', s.deadlines, '-inf', '+inf') > MOST_TRIMMED then
    local rank = LAST_TRIMMED_AT + redis.call('ZCOUNT', s.deadlines, '-inf', '(' .. from)
    local far = redis.call('ZRANGE', s.deadlines, rank, rank, 'WITHSCORES')[2]
    if far and far - s.now < from then till = far end
  end
  redis.call('ZREMRANGEBYSCORE', s.deadlines, from, till)
end

-- The pace with one more hold: a running mean of the lengths of the last holds, about 32 of them, from which clients
-- estimate how long a queued caller will wait (src/kinds/expected.ts). It is the mean in µs, times COUNTS, plus the number
-- of holds. Only a release that finds callers queued adds its hold: it reads and writes the time and the hash anyway.
-- `spent`: the length in µs; in a semaphore, times the permits. A run of hand-offs within a client is one hold, because the
-- queue waits for the whole run. Comparisons cost less than calls of math functions.
local function sample(s, spent)
  local known = (s.pace or 0) + 0
  local count = known % COUNTS
  local mean, length = (known - count) / COUNTS, spent
  if count < MOST_COUNTED then count = count + 1 end
  if length < 0 then length = 0 elseif length > MOST_SPENT then length = MOST_SPENT end
  mean = mean + (length - mean) / (count < WEIGHT and count or WEIGHT)
  return string.format('%.0f', (mean - mean % 1) * COUNTS + count)
end

-- Adds waiters to `page`, each as claim, ticket, and the deadlines of those that have one to `times`, each as waiter,
-- deadline. Returns how many waiters there are. They stand in the queue from rank `from` on. `ticketed`: an entry is
-- "<ticket><claim>".
local function readPage(s, line, from, most, page, times, ticketed)
  local entries = redis.call('ZRANGE', line, from, from + most - 1, 'WITHSCORES')
  for i = 1, #entries, 2 do
    local claim, ticket = entries[i], entries[i + 1]
    if ticketed then
      claim, ticket = claim:sub(TOKEN_END + 1), claim:sub(1, TOKEN_END)
    end
    page[#page + 1], page[#page + 2] = claim, ticket
    local deadline = (redis.call('ZSCORE', s.deadlines, claim:sub(1, ID_END)) or 0) - WAITER
    if deadline > 0 then
      times[#times + 1], times[#times + 2] = claim:sub(1, ID_END), string.format('%.0f', deadline)
    end
  end
  return math.floor(#entries / 2)
end

-- The rank from which a page of a queue begins: behind the last waiter of the previous page, even if that has left.
local function pageFrom(line, ticket, behind)
  local rank = behind and redis.call('ZRANK', line, behind)
  return rank and rank + 1 or behind and redis.call('ZCOUNT', line, '-inf', '(' .. ticket) or 0
end
