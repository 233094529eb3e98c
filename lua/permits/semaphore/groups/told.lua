-- told: whether a waiter needs no message, because the reply of this script reports its grant. The reply reports grants
-- to all waiters of the calling client, whatever their groups are.
--
-- Takes
--   claim  string   the waiter's claim
--   mine?  string   the prefix of ids that need no message; absent: all waiters need one
-- Gives
--   told   boolean  the waiter needs no message
told = mine and claim:sub(1, #mine) == mine
