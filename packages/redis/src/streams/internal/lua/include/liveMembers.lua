--- Reads the members that sent a heartbeat in time, and removes the others.
---
--- Heartbeats that are far ahead of the clock, which was set back, are overdue too: live members send another.
--- @include clock.lua

local function liveMembers(members)
  local found = {}
  local all = redis.call('HGETALL', members)
  for i = 1, #all, 2 do
    local capacity, owned, heartbeatAt, expiry = string.match(all[i + 1], '^(%d+)|(%d+)|(%d+)|(%d+)$')
    if heartbeatAt and math.abs(now - heartbeatAt) < tonumber(expiry) then
      found[#found + 1] = table.concat({ all[i], capacity, owned }, '@@')
    else
      redis.call('HDEL', members, all[i])
    end
  end
  return found
end
