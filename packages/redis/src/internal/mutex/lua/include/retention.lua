--- How long keys are kept after their last use.

-- 7 days in ms. Tokens keep growing after the key has expired, because they are minted from the server's clock
local fenceMillis = '604800000'
