--- Returns the members whose heartbeats are on time, and removes all others.
---
--- If the clock was set back, a heartbeat may be far ahead of it. Such a heartbeat counts as overdue too, because a
--- live member will send another one.
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
