--- Mints fencing tokens. Each grant gets a token that is larger than all earlier ones and ahead of the clock.
---
--- A token that is a multiple of 100 also reserves the next 99 tokens, for successive owners in the same process. Any
--- other token reserves none, so that tokens stay within a millisecond of the clock even if grants follow in quick
--- succession. The fence key holds the token of the last grant.
--- @include clock.lua
--- @include retention.lua

local function mint(fence)
  local at = micros()
  local token = at - at % 100 + 100
  local text = string.format('%.0f', token)
  local last = tonumber(redis.call('SET', fence, text, 'PX', fenceMillis, 'GET') or '') or 0
  -- Above this limit the next token may exceed 2^53, where numbers are not exact: another program wrote the fence
  if last >= token and last < 2 ^ 53 - 101 then
    -- The last grant was a moment ago, or the clock is behind: mint a single token, after those that the last grant
    -- reserved
    text = string.format('%.0f', last + (last % 100 == 0 and 101 or last % 100 == 99 and 2 or 1))
    redis.call('SET', fence, text, 'PX', fenceMillis)
  end
  return text
end
