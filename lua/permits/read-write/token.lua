-- token: of a new hold: the next of the clock. An owner with a name that holds already, or is let in by the same call, has one token for
-- all of its holds, as if it had re-entered (I2): what it writes must not be refused because of what it holds besides.
--
-- Takes
--   claim   string  of the new holder
--   lock    HASH    the lock
--   grants  list    by the names of their fields (lua/permits/read-write/own.lua), the tokens of owners that this call lets in
--   stamp   string  the server's time
--   micros  µs      the same
-- Changes
--   clock   µs      moves on
-- Gives
--   token   string  of the hold
--   tick    string  `clock` as a text
-- include: clock
token = tick
if claim:sub(TERMS_AT, NAMELESS_END) ~= NAMELESS then
  -- include: owner
  token = grants[OWNED_BY .. owner] or known and known:sub(1, TOKEN_END) or tick
  grants[OWNED_BY .. owner] = token
end
