-- Everything that the scripts need to know about the lock, read by one call.
-- owner, hold, token, label   strings, or false
-- ends     ms by the server's clock at which the lease ends, or nil
-- clock    µs, the last ticket or token issued; 0: the key is new or was lost
-- queued   ms until which the queue's keys are kept; nil: nobody is queued
-- keep     ms at which the lock's own key expires, or 0
-- holds    live holds of the holder; nil means one
local state = redis.call('HMGET', lock, 'owner', 'hold', 'until', 'clock', 'queued', 'keep', 'holds', 'token', 'label')
local owner, hold, token, label = state[1], state[2], state[8], state[9]
local ends, clock = tonumber(state[3] or nil), tonumber(state[4] or 0)
local queued, keep, holds = tonumber(state[5] or nil), tonumber(state[6] or 0), tonumber(state[7] or nil)
