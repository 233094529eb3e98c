-- token: the token of a new hold. It is the next value of the clock, with one exception: all holds of an owner with a
-- name have one token, as if the owner had re-entered (I2). So a new hold gets the token of the owner's other holds,
-- whether these are older or are granted by the same call. With two tokens, a resource that has seen the larger one
-- would refuse what the owner writes with the smaller one.
--
-- Takes
--   claim   string  the new holder's claim
--   lock    HASH    the lock
--   grants  list    the token of each owner that this call admits; the index is the name of the owner's field (lua/permits/read-write/own.lua)
--   stamp   string  the server's time, µs as text
--   micros  µs      the server's time
-- Changes
--   clock   µs      advances to the new value
-- Gives
--   token   string  the token of the hold
--   tick    string  `clock` as text
-- include: clock
token = tick
if claim:sub(TERMS_AT, NAMELESS_END) ~= NAMELESS then
  -- include: owner
  token = grants[OWNED_BY .. owner] or known and known:sub(1, TOKEN_END) or tick
  grants[OWNED_BY .. owner] = token
end
