--- How long keys are kept after their last use.

-- 7 days in ms. After that the clock of the server, which seeds tokens, keeps them growing
local fenceMillis = '604800000'
