-- enters: whether a waiter may re-enter, because its owner holds. If the message 'entered' was lost, the client learns
-- this only from the reply to a heartbeat: that reply names one holder only, and there may be several.
--
-- Takes
--   claim    string   the waiter's claim
--   lock     HASH     the lock
-- Gives
--   enters   boolean  the waiter may re-enter
enters = false
if claim:sub(TERMS_AT, NAMELESS_END) ~= NAMELESS then
  -- include: owner
  enters = known and (claim:match(WANTS, TERMS_AT) == '1' or known:sub(OWNED_AT) + 0 >= ALL_PERMITS)
end
