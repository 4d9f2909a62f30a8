--- Wakes waiters up.
--- Needs owner, queue, skipDead.
--- @include liveWaiters.lua

local function tell(id, inbox, message)
  if inbox then
    redis.call('PUBLISH', inbox, id .. '@@' .. message)
  else
    redis.call('PUBLISH', owner .. ':' .. id, message)
  end
end

-- Where nobody can be seen to be dead, one of several is alive more likely than the first
local function tellFirst(millis)
  local message, told = 'look@@' .. string.format('%.0f', millis), 0
  walk(function(id, inbox)
    if inbox then
      tell(id, inbox, message)
      told = told + 1
      return (skipDead or told == 8) and 'stop' or 'pass'
    end
  end)
end
