-- leave: a caller that has given up (time-out, abort, close) takes its request back.
--
-- If the caller is queued, it is removed from the queue. If the caller was granted the lock before this call ran, its
-- hold ends and the lock goes to the next waiter. So a grant after a cancel is never kept (I4, I7). If the caller is
-- neither queued nor a holder, nothing changes, so the call may be repeated.
--
-- KEYS
--   lock        HASH    the lock
--   queue?      ZSET    fair waiters by ticket
--   deadlines?  ZSET    the ends of re-entered holds, and waiters' deadlines (lua/holder.lua)
-- ARGV
--   id        string  the caller's id, as a waiter and as a holder
--   entry?    string  the caller's claim; absent: the caller has not tried to join the queue
-- Replies
--   left        the caller was queued
--   returned    the caller was the holder; the lock was handed off or is free
--   unfinished  the caller was the holder, but one call may pass over only so many waiters; lua/mutex/sweep.lua finds the next holder
--   absent      the caller was neither queued nor the holder
-- Invariants: I4 I5 I7

local fields = redis.call('HMGET', lock, 'holder', 'clock', 'queued', 'keep', 'holds', 'pace')
--[[cluster
if not deadlines then return redis.error_reply('ERR non local key') end
--]]
local outcome = 'absent'
-- If the waiter is not in the queue, its deadline stays in `deadlines`. Without this deadline, the key might be empty,
-- and the rest of the script may read it. While a cluster moves the slot, reading an empty key would fail (`promote`).
if entry and redis.call('ZREM', queue, entry) == 1 then
  redis.call('ZREM', deadlines, id)
  outcome = 'left'
end
-- Fast path: the usual case returns here, before the work that only rarer cases need.
local holder = fields[1]
if not fields[5] and not (holder and holder:sub(HELD_ID_AT, HELD_ID_END) == id) then return outcome end

-- functions
local s = stateOf(lock, queue, deadlines, fields, readTime())
local dropped, _, unfinished = drop(s, id, nil, nil, nil)
if unfinished then return 'unfinished' end
return dropped and 'returned' or outcome
