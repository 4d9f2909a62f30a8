--- Makes fencing tokens. Each grant takes a token larger than all before, and above the clock.
---
--- A token that is a multiple of 100 comes with the 99 after it, for owners that follow one another in its process. Any
--- other comes alone: where grants follow one another faster, tokens stay within a millisecond of the clock.
--- The fence holds the token of the last grant.
--- Needs fence.
--- @include clock.lua
--- @include retention.lua

local function writeFence(token)
  return redis.call('SET', fence, string.format('%.0f', token), 'PX', fenceMillis, 'GET')
end

local function mint()
  local token = math.floor(micros() / 100) * 100 + 100
  local last = tonumber(writeFence(token) or '') or 0
  local least = last % 100 == 0 and last + 100 or last + 1
  if least > token then
    -- The last grant was a moment ago, or the clock is behind
    token = least % 100 == 0 and least + 1 or least
    writeFence(token)
  end
  return string.format('%.0f', token)
end

-- The time, and the token of the last grant: a later one has a larger token, whatever the clock does
local function stampNow()
  return string.format('%.0f', micros()), string.match(redis.call('GET', fence) or '', '^%d+') or '0'
end
