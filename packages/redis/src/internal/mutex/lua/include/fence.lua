--- Makes fencing tokens. Each grant takes a token larger than all before, and not below the clock.
---
--- The fence holds the token `T`, or `T/b` where the `b` tokens after it are reserved for the same grant.
--- Needs fence.
--- @include clock.lua
--- @include retention.lua

local function readFence(text)
  if text == nil then
    text = redis.call('GET', fence)
  end
  local token, spare = string.match(text or '', '^(%d+)/?(%d*)$')
  return token, tonumber(spare) or 0
end

local function writeFence(token, spare)
  redis.call('SET', fence, spare > 0 and token .. '/' .. string.format('%.0f', spare) or token, 'PX', fenceMillis)
end

local function mint(spare, text)
  local last, reserve = readFence(text)
  local token = string.format('%.0f', math.max((tonumber(last) or 0) + reserve + 1, micros()))
  writeFence(token, spare or 0)
  return token
end
