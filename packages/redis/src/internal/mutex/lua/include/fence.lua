--- Makes fencing tokens. Each grant takes a token larger than all before, and above the clock.
---
--- A token that is a multiple of 100 also reserves the 99 after it, for successive owners in its process. Any other
--- token reserves none, so that tokens stay within a millisecond of the clock even if grants follow in quick
--- succession. The fence holds the token of the last grant.
--- @include clock.lua
--- @include retention.lua

local function mint(fence)
  local at = micros()
  local token = at - at % 100 + 100
  local text = string.format('%.0f', token)
  local last = tonumber(redis.call('SET', fence, text, 'PX', fenceMillis, 'GET') or '') or 0
  if last >= token then
    -- The last grant was a moment ago, or the clock is behind: mint one token, after that grant's reserved tokens if it
    -- has any
    text = string.format('%.0f', last + (last % 100 == 0 and 101 or last % 100 == 99 and 2 or 1))
    redis.call('SET', fence, text, 'PX', fenceMillis)
  end
  return text
end
