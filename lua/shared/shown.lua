-- shown: shows a holder under a hold that lives. If its first hold has ended, that is its oldest re-entry, if it is
-- listed (lua/shared/unlist.lua).
--
-- Takes
--   holds?     string  see lua/shared/state.lua
--   deadlines  ZSET    see lua/shared/live.lua
--   now        ms      the server's time
-- Changes
--   holder?    string  has the id and the label of that hold. If its caller gave no name, it also has its owner, which is the id of the first hold
-- Constants
--   QUEUEING = '^ %d+( %S+ %d+ %d+ )'  what a claim has between owner bytes and names
if holder and holds then
  local id, label, at = holder:sub(HELD_ID_AT, HELD_ID_END), nil, LISTED_AT
  local first = id
  repeat
    local lives = (redis.call('ZSCORE', deadlines, id) or 0) + 0
    local ended, size, from = lives < now or lives >= WAITER, nil, nil
    if ended then
      id, size, from = holds:match(LISTED, at)
      at = id and from + size
      label = id and holds:sub(from, at - 1)
    end
  until not ended or not id
  if label then
    local bytes, names = holder:match(NAMES, HELD_TERMS_AT)
    local owner = bytes == '0' and first or names:sub(1, bytes)
    local queueing = holder:match(QUEUEING, HELD_TERMS_AT)
    holder = holder:sub(1, AFTER_FROM) .. id .. ' ' .. #owner .. queueing .. owner .. label
  end
end
