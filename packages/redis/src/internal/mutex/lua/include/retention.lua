--- How long keys are kept after their last use.

-- 7 days in ms. Afterwards the clock of the server, its seed, keeps tokens growing
local fenceMillis = '604800000'
