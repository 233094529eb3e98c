-- take: counts the permits of a caller that is granted them at once.
--
-- Takes
--   wants   string  how many permits
-- Changes
--   taken   number  includes these permits
taken = taken + wants
