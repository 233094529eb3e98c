-- unlist: takes a hold out of `holds`, the list of the holder's re-entries.
--
-- `holder` has the claim of the first hold. If that hold ends before the others, the lock is shown under one of these
-- (lua/shared/shown.lua). For this, the field `holds` of the lock has the id and the label of each re-entry, the oldest
-- first: "1<id> <label bytes> <label><id> <label bytes> <label>…". A re-entry that has lapsed stays in the list. A client
-- of an earlier version neither adds its re-entries to the list nor takes them out.
--
-- Takes
--   id      string  the hold
-- Changes
--   holds   string  does not have the hold any more
-- Constants
--   NOT_LISTED = '1'            the value of `holds` if nothing is listed
--   LISTED_AT = 2               the first character of the list
--   LISTED = '^(%S+) (%d+) ()'  id; label bytes; where the label begins
local at = LISTED_AT
repeat
  local each, size, from = holds:match(LISTED, at)
  local behind = each and from + size
  if each == id then holds = holds:sub(1, at - 1) .. holds:sub(behind) end
  at = behind
until not each or each == id
