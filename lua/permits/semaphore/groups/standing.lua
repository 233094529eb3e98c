-- standing: what `inspect` has to know about the groups of the holders and waiters on this page, to tell the order of the
-- next grants.
--
-- Takes
--   records    list    the records of the holders
--   page       list    claim, ticket for each waiter
--   shares     HASH    see lua/permits/semaphore/groups/settle.lua
-- Gives
--   standing?  list    the virtual time; then for each group its name, last finish tag and weight
local virtual = redis.call('HMGET', shares, 'v')[1] or '0'
standing = { virtual }
local claims, seen = {}, {}
for _, record in ipairs(records) do
  claims[#claims + 1] = record:sub(CLAIM_AT)
end
for i = 1, #page, 2 do
  claims[#claims + 1] = page[i]
end
for _, claim in ipairs(claims) do
  -- include: group
  if not seen[group] then
    seen[group] = true
    local known = redis.call('HMGET', shares, 'f' .. group, 'w' .. group)
    for _, value in ipairs({ group, known[1] or '0', known[2] or '1' }) do
      standing[#standing + 1] = value
    end
  end
end
