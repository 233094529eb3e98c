-- promote: makes the first live waiter of the fair queue the holder (I3, I4), and sends a message to its inbox.
--
-- One call passes over a limited number of waiters, so that it does not block the server for long. If a call reaches
-- the limit, the lock has no holder until the next call continues the search. Any client that asks for the lock has to
-- continue the search first.
--
-- A queue entry is the waiter's claim, and its score is the ticket. The claim begins with the waiter's id, whose first
-- 12 characters name the inbox of its client.
--
-- A waiter is passed over, and so removed from the queue, in two cases:
--   * Its expiry has passed: it joined longer ago than its waiterTtl, and no heartbeat has recorded a later deadline.
--   * PUBLISH reports that nobody is subscribed to its inbox: its process is dead or disconnected. If the process lives
--     after all, the waiter joins again with its old ticket. So each waiter of a crashed process costs one ZPOPMIN, and
--     no time-out. If such waiters follow each other in the queue, they cost one message together. This case does not
--     exist for waiters of the calling client, which need no message.
--
-- In a cluster, the second case has a further condition. The slot may have just moved to this node, and the clients of
-- live waiters may not have subscribed here yet. If these waiters lost their places, a failover would change the order.
-- So a waiter is passed over only if its client was subscribed on this very node before (lua/shared/send.lua).
-- Otherwise the waiter becomes the holder, and its heartbeat finds the grant.
--
-- When the script began, the queue was on this node. This call may pop the last entry of the
-- queue while the slot is moving away. At the next pop, Redis then looks for the queue on the other node, and refuses
-- the command. That refusal means that the queue is empty. It must not end the script, which has already written
-- something.
--
-- PUBLISH comes after the end of the old hold and before the write of the new one, because the number of subscribers
-- decides whether the waiter becomes the holder. ZPOPMIN is the first write and frees memory, so a server at maxmemory
-- accepts the writes after it. If an ACL makes the server refuse PUBLISH, the waiter still becomes the holder; its next
-- heartbeat finds the grant.
--
-- Takes
--   reason      string   the first word of the message
--   mine?       string   the prefix of ids that need no message, because this script's reply reaches their client; absent: none
--   sampled?    string   see lua/shared/sample.lua
--   lock        HASH     the lock
--   queue       ZSET     fair waiters by ticket
--   deadlines   ZSET     see lua/shared/live.lua
--   now         ms       the server's time
--   micros      µs       the server's time
--   stamp       string   the server's time, µs as text
-- Changes
--   holder      string   the new holder, if there is a successor
--   token       string   the new holder's token
--   ends        ms       the end of the new holder's lease
--   hold        string   the id of the new holder
--   queued      ms       absent if the queue is empty afterwards
--   clock       µs       advances to the new holder's token
--   keep        ms       grows if the lock's key has to live longer
-- Gives
--   successor?  string   the id of the new holder; absent: the queue is empty, or the search is unfinished
--   unfinished? boolean  the limit of one call was reached; the next call has to continue
-- Constants
--   MOST_PASSED_OVER = 250  waiters passed over by one call, at most
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
    redis.call('ZREMRANGEBYSCORE', deadlines, WAITER, '+inf')
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
      if lease * 3 < ttl + 0 then
        -- include: tell { lasts = lease }
      end
    else
      deaf = client
    end
  end
  unfinished = left == 0 and not successor
until successor or unfinished
