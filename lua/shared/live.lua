-- live: until when a hold lasts, by its own lease.
--
-- Each hold has a lease of its own. So the hold of a process that has died ends with its lease, however often other
-- processes of the same owner come back meanwhile (I4). While the holder has more than one, they stand in a ZSET with their
-- deadlines, which finds the latest of any number without a walk.
--
-- Takes
--   id      string  the hold
--   all     ZSET    lua/shared/all.lua
--   holds?  string  lua/shared/state.lua
--   hold?   string  lua/shared/holder.lua
--   ends?   ms      lua/shared/ends.lua
-- Gives
--   lives?  ms      by the server's clock; absent: the holder has no such hold
if holds then
  lives = tonumber(redis.call('ZSCORE', all, id) or nil)
elseif hold == id then
  lives = ends
end
