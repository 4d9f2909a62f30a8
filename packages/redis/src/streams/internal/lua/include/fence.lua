--- Makes fencing tokens: each larger than all before, and not below the clock.
--- @include retention.lua

local function nextToken(last)
  local time = redis.call('TIME')
  local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
  return string.format('%.0f', math.max((tonumber(last) or 0) + 1, micros))
end

local function keepFence(fence, token)
  redis.call('SET', fence, token, 'PX', keepMillis)
end
