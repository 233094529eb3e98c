-- shorten: shortens the life of a free lock's key, if a long lease made it much longer than MEMORY. The key then lives
-- for MEMORY from now (lua/shared/life.lua). If MEMORY is longer than the lease, the life is about right already, and
-- this costs no command. With MEMORY 0, Redis removes the key at once. So this must be the last write of a script: a
-- later write would make a key without expiry.
--
-- Takes
--   keep    ms      the time at which the key expires
--   clock   µs      the last ticket or token
--   lock    HASH    the lock
if keep - clock / 1000 > MEMORY * 1.1 + 1 then
  -- include: time
  local free = math.max(now, math.ceil(clock / 1000)) + MEMORY
  if keep - free > MEMORY / 10 then
    redis.call('HDEL', lock, 'keep')
    redis.call('PEXPIREAT', lock, free)
  end
end
