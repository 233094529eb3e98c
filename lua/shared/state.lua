-- state: everything that the scripts need to know about the lock, read by one call.
--
-- Takes
--   lock      HASH    the lock
-- Gives
--   holder?   string  "<token> <until> <claim>": who holds the lock, or held it until its lease lapsed (include/holder.lua)
--   clock     µs      the last ticket issued, or the last token that Redis knows of
--   queued?   ms      until which the queue's keys are kept; absent: nobody is queued
--   keep      ms      at which the lock's own key expires, or 0
--   holds?    string  set while the holder's holds stand in the lock's ZSET of holds, because its owner has re-entered (include/live.lua)
--   reserved  µs      the last token that a holder may issue by itself; it means nothing once `clock` has reached it
-- Constants
--   NO_CLOCK = 0      `clock`: the key is new or was lost
local state = redis.call('HMGET', lock, 'holder', 'clock', 'queued', 'keep', 'holds', 'reserved')
holder, holds = state[1], state[5]
clock, keep, reserved = tonumber(state[2] or 0), tonumber(state[4] or 0), tonumber(state[6] or 0)
queued = tonumber(state[3] or nil)
