--- Sends a message to a waiter: through its layer's inbox, or on the Simba waiter's own channel.
---
--- A layer identifies its waiters by the counters in their ids.

local function notify(owner, id, inbox, message)
  if inbox then
    redis.call('PUBLISH', inbox, string.match(id, '^%d+') .. '@@' .. message)
  else
    redis.call('PUBLISH', owner .. ':' .. id, message)
  end
end
