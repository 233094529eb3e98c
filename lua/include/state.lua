-- Everything that the scripts need to know about the lock, read by one call.
-- holder   "<token> <until> <claim>", or false: who holds the lock, or held it until its lease lapsed (include/holder.lua)
-- clock    µs, the last ticket or token issued; 0: the key is new or was lost
-- queued   ms until which the queue's keys are kept; nil: nobody is queued
-- keep     ms at which the lock's own key expires, or 0
-- holds    live holds of the holder; nil means one
local state = redis.call('HMGET', lock, 'holder', 'clock', 'queued', 'keep', 'holds')
local holder = state[1]
local clock, keep = tonumber(state[2] or 0), tonumber(state[4] or 0)
local queued, holds = tonumber(state[3] or nil), tonumber(state[5] or nil)
