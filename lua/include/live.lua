-- Sets `lives` to the ms until which the hold `id` lasts, by its own lease; nil: the holder has no such hold.
-- Each hold has a lease of its own. So the hold of a process that has died ends with its lease, however often other
-- processes of the same owner come back meanwhile (I4). While the holder has more than one, they stand in a ZSET with their
-- deadlines, which finds the latest of any number without a walk.
local lives
if holds then
  lives = tonumber(redis.call('ZSCORE', lock .. ':holds', id) or nil)
elseif hold == id then
  lives = ends
end
