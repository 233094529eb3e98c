-- numbered: the numbers of a hold, as they follow its token in a reply (lua/permits/semaphore/number.lua).
--
-- Takes
--   record   string  the record of the hold
-- Gives
--   numbers  string  ":<numbers>", or nothing
numbers = record:match(NUMBERS, RECORD_TERMS_AT)
numbers = numbers and ':' .. numbers or ''
