-- release: end one hold. If it was the holder's last, hand the lock to the next fair waiter, or open it.
--
-- Only the hold's own id ends it (I5): a late, repeated or foreign release finds no such hold and changes nothing.
-- The only hold of a lock without a queue needs no clock. It frees before it fills, so it works at maxmemory.
-- A hold that is still recorded is ended whether or not its lease has lapsed: its caller knows its own deadline.
-- With the only hold of a lock without a queue, tokens that were reserved and not used go back, or the clock would run
-- ahead of the time of day. Not if it has moved since: then somebody has a larger ticket.
--
-- KEYS
--   lock       HASH    the lock
--   queue      ZSET    fair waiters by ticket
--   expiry     ZSET    waiters' deadlines, ms
-- ARGV
--   id         string  the hold to end; a waiter of the same client is told of its grant by the reply
--   memory     ms      how long a free lock's clock is kept
--   inbox      string  prefix of the grant channels
--   used?      string  the last token that the client issued from the block it had reserved
--   reserved?  string  the last token of that block
-- Replies
--   released   how many heard that the lock is free; 0 if it is not: it went on, or another hold of its owner lives
--   passed     id, token, ttl ms: a waiter of the same client is now the holder
--   ended      there was no such hold
-- Invariants: I2 I3 I4 I5 I7
-- include: state

local client = string.sub(id, 1, 12)

-- The usual case stands before everything that it does not need.
if holder and not queued and not holds and string.sub(holder, 32, 59) == id then
  redis.call('HDEL', lock, 'holder')
  if used and clock == tonumber(reserved) then redis.call('HSET', lock, 'clock', used) end
  return 'released ' .. (tonumber(redis.pcall('PUBLISH', lock .. ':unlock', 'free ' .. client)) or 0)
end

-- include: holder
-- include: time
local mine = client
-- include: drop
if not dropped then return 'ended' end
if heir and string.sub(heir, 1, 12) == client then return 'passed ' .. heir .. ' ' .. token .. ' ' .. ends - now end
return 'released ' .. (told or 0)
