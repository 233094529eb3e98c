-- release: end one hold, and let those in who fit now.
--
-- Only the hold's own id ends it (I5): a late, repeated or foreign release finds no such hold and changes nothing. A hold that
-- is still recorded is ended whether or not its lease has lapsed: its caller knows its own deadline.
--
-- KEYS
--   lock        HASH    the lock; its other keys follow from it (lua/shared/deadlines.lua, and queues.lua of its kind)
-- ARGV
--   id          string  the hold to end; waiters of the same client, in the same queue, are told of their grants by the reply
-- Replies
--   released    how many heard that permits are free. Absent: nobody, or they went to waiters of the fair queue
--   passed      id, token, ttl ms, and so on: such waiters are holders now
--   unfinished  the same, of none or more; who else follows is found by lua/permits/sweep.lua, because they are so many
--   ended       there was no such hold
-- Invariants: I2 I3 I4 I5 I7
-- include: permits
if not record then return 'ended' end
local client = id:sub(1, CLIENT_END)
-- include: deadlines

-- The usual case stands before everything that it does not need.
if not queued then
  -- include: give-up
  -- include: opened
  return 'released ' .. heard
end

-- include: queues
-- include: time
-- include: give-up
-- include: line { claim = record:sub(CLAIM_AT) }
-- include: vacate { by = client, mine = client, asks = line }
local passed = ''
for i = 1, #admitted, 2 do
  local claim = admitted[i]
  -- include: told { mine = client, asks = line }
  if told then
    passed = passed .. ' ' .. claim:sub(1, ID_END) .. ' ' .. admitted[i + 1] .. ' ' .. claim:match(LEASE, TERMS_AT)
  end
end
if unfinished then return 'unfinished' .. passed end
if passed ~= '' then return 'passed' .. passed end
return 'released ' .. heard
