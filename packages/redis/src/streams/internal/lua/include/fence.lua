--- Mints fencing tokens. Each token is larger than all earlier ones, and at least the server's time in microseconds.
--- @include clock.lua
--- @include retention.lua

-- Ignores an invalid fence, which another program must have written. Above 2^53, the next number is not exact
local function nextToken(last)
  local known = tonumber(last) or 0
  return string.format('%.0f', math.max(known < 2 ^ 53 - 1 and known + 1 or 0, micros))
end

local function keepFence(fence, token)
  redis.call('SET', fence, token, 'PX', keepMillis)
end
