--- Sends a message to a waiter, through its layer's inbox or, for a Simba waiter, on its own channel.
---
--- Each layer identifies its waiters by the counters in their ids.
--- @include contenderIds.lua

-- Returns the channel of the id's layer; nil for a Simba id
local function inboxOf(id)
  local layer = layerOf(id)
  return layer and 'simba:inbox:' .. layer
end

local function notify(owner, id, inbox, message)
  if inbox then
    redis.call('PUBLISH', inbox, string.match(id, '^%d+') .. '@@' .. message)
  else
    redis.call('PUBLISH', owner .. ':' .. id, message)
  end
end
