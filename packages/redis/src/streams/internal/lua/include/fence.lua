--- Mints fencing tokens. Each is larger than all earlier ones, and at least the server's time in microseconds.
--- @include clock.lua
--- @include retention.lua

local function nextToken(last)
  return string.format('%.0f', math.max((tonumber(last) or 0) + 1, micros))
end

local function keepFence(fence, token)
  redis.call('SET', fence, token, 'PX', keepMillis)
end
