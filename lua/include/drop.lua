-- Ends one hold by its id; with the holder's last hold, the holder.
-- Returns whether there was such a hold, and the id of the new holder, if there is one.
local function drop(id, mine)
  local reentry = hold ~= id
  if reentry and not (holds and redis.call('HDEL', lock, 'hold:' .. id) == 1) then return false end
  if not holds or holds == 1 then
    if queued then readTime() end
    return true, open(mine)
  end
  if not reentry then redis.call('HDEL', lock, 'hold') end
  redis.call('HSET', lock, 'holds', holds - 1)
  return true
end
