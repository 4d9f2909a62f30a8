--- Makes fencing tokens. Each grant takes a token larger than all before, and not below the clock.
---
--- The fence holds the token `T`, or `T/b` where the `b` tokens after it are reserved for the same grant.
--- Needs fence.
--- @include clock.lua
--- @include retention.lua

local function parseFence(text)
  local token, spare = string.match(text or '', '^(%d+)/?(%d*)$')
  return token, tonumber(spare) or 0
end

-- Returns the text before
local function writeFence(token, spare)
  local text = spare > 0 and token .. '/' .. string.format('%.0f', spare) or token
  return redis.call('SET', fence, text, 'PX', fenceMillis, 'GET')
end

-- The reserved tokens after `last` were not used, so tokens do not run ahead of the clock
local function giveBack(last)
  local text = redis.pcall('GET', fence)
  local token, spare = parseFence(type(text) == 'string' and text or '')
  local first = tonumber(token)
  if spare > 0 and last >= first and last <= first + spare then
    writeFence(string.format('%.0f', last), 0)
  end
end

-- The time, and the token of the last grant: a later one has a larger token, whatever the clock does
local function stampNow()
  return string.format('%.0f', micros()), parseFence(redis.call('GET', fence)) or '0'
end

local function mint(spare)
  local token = string.format('%.0f', micros())
  local last, reserve = parseFence(writeFence(token, spare))
  local least = last and tonumber(last) + reserve + 1
  if least and least > micros() then
    -- The clock is behind
    token = string.format('%.0f', least)
    writeFence(token, spare)
  end
  return token
end
