-- Ends the hold `id`; with the holder's last hold, the holder. Expects `mine`, as include/promote.lua. Sets `dropped` to
-- whether there was such a hold; if the lock has gone on, `heir` to the id of the new holder; if it is open, `told` to how
-- many heard so.
-- HDEL comes first, also where it finds nothing, because a server at maxmemory refuses a script whose first write is HSET.
local heir, told
local first = hold == id
local reentry = holds and redis.call('HDEL', lock, 'hold:' .. id) == 1
local dropped = first or reentry
if dropped and (not holds or holds == 1) then
  -- include: open
  heir, told = next, heard
elseif dropped then
  if first then
    local bytes, terms, names = string.match(holder, '^ (%d+)( %d+ %d+ %d+ )(.*)$', 60)
    local owner = bytes == '0' and id or string.sub(names, 1, bytes)
    local ended = string.sub(id, 1, 12) .. string.rep('-', 16) .. ' ' .. #owner .. terms
    redis.call('HSET', lock, 'holder', string.sub(holder, 1, 31) .. ended .. owner .. string.sub(names, bytes + 1))
  end
  redis.call('HSET', lock, 'holds', holds - 1)
end
