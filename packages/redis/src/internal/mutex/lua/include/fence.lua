--- Mints fencing tokens. Each grant gets a token larger than all earlier tokens and ahead of the clock.
---
--- A token that is a multiple of 100 reserves the next 99 tokens for successive owners in the same process. Other
--- tokens reserve none, which keeps tokens within a millisecond of the clock even if grants follow in quick succession.
--- The fence key stores the last grant's token.
--- @include clock.lua

-- Returns the token, and its lead over the clock in microseconds
local function mint(fence)
  -- 7 days in ms. Tokens keep growing after the key has expired, because they are minted from the server's clock
  local fenceMillis = '604800000'
  local token = now - now % 100 + 100
  local text = string.format('%.0f', token)
  local last = tonumber(redis.call('SET', fence, text, 'PX', fenceMillis, 'GET') or '') or 0
  -- Above this limit, the next token might exceed 2^53, where numbers are not exact. Another program must have written
  -- such a fence
  if last >= token and last < 2 ^ 53 - 101 then
    -- The last grant was a moment ago, or the clock is behind. Mint a single token, after those reserved by the last
    -- grant
    token = last + (last % 100 == 0 and 101 or last % 100 == 99 and 2 or 1)
    text = string.format('%.0f', token)
    redis.call('SET', fence, text, 'PX', fenceMillis)
  end
  return text, token - now
end
