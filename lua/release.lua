-- release: end one hold. If it was the holder's last, hand the lock to the next fair waiter, or open it.
--
-- Only the hold's own id ends it (I5): a late, repeated or foreign release finds no such hold and changes nothing.
-- It needs no clock while nobody is queued. It frees before it fills, so it works at maxmemory.
-- A hold that is still recorded is ended whether or not its lease has lapsed: its caller knows its own deadline.
--
-- KEYS
--   lock      HASH    the lock
--   queue     ZSET    fair waiters by ticket
--   expiry    ZSET    waiters' deadlines, ms
-- ARGV
--   id        string  the hold to end
--   client    string  a waiter of this client is told of its grant by the reply
--   inbox     string  prefix of the grant channels
--   memory    ms      how long a free lock's clock is kept
-- Replies
--   released  the hold has ended
--   passed    id, token, ttl ms: the same, and this waiter of the same client is now the holder
--   ended     there was no such hold
-- Invariants: I3 I4 I5 I7
-- include: state
-- include: time
-- include: clock
-- include: life
-- include: grant
-- include: reentries
-- include: promote
-- include: open
-- include: drop

local dropped, successor = drop(id, client)
if not dropped then return { 'ended' } end
if successor and string.sub(successor, 1, #client) == client then return { 'passed', successor, token, ends - now } end
return { 'released' }
