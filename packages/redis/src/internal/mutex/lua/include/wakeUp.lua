--- Wakes waiters up.
--- Needs owner, queue, skipDead.
--- @include liveWaiters.lua

local function tell(id, message)
  local inbox = inboxOf(id)
  if inbox then
    redis.call('PUBLISH', inbox, id .. '@@' .. message)
  else
    redis.call('PUBLISH', owner .. ':' .. id, message)
  end
end

local function tellToLook(id, millis)
  tell(id, 'look@@' .. string.format('%.0f', millis))
end

-- Where nobody can be seen to be dead, one of several is alive more likely than the first
local function tellFirst(millis)
  local told = 0
  walk(function(id, score)
    if isOurTicket(score) then
      tellToLook(id, millis)
      told = told + 1
      return (skipDead or told == 8) and 'stop' or 'pass'
    end
  end)
end
