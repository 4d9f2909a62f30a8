--- How long keys are kept after their last use.

-- 7 days in ms, for fences, checkpoints, failures and announcements
local keepMillis = '604800000'
