-- group: the group of a claim, and what the claim says about the group.
--
-- Such a claim has three more values behind the number of permits: "<permits>/<of>;<limit>;<weight>;<group>", where limit
-- and weight may be empty. The client writes the name of the group without spaces and semicolons (src/kinds/claim.ts).
--
-- Takes
--   claim   string  a claim
-- Gives
--   group   string  the name of the group; empty: the claim has none
--   limit   string  how many permits the group may have at a time; empty: as many as there are
--   weight  string  the weight of the group; empty: the claim leaves it as it is
-- Constants
--   GROUPED = '^ %d+ %S+ %d+ %d+ %d+/%d+[s%d.]*;'                    a claim with a group
--   GROUP = '^ %d+ %S+ %d+ %d+ %d+/%d+[s%d.]*;(%d*);([^;]*);(%S+) '  limit, weight, group
limit, weight, group = claim:match(GROUP, TERMS_AT)
if not group then
  limit, weight, group = '', '', ''
end
