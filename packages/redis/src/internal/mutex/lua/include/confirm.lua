--- Extends a grant to a full lease, for a waiter that has started work on a grant message.
---
--- Never grants the mutex.
---
--- The token distinguishes this grant from other grants to the same id. Returns the token, or the same reply as a
--- refused try-acquire.
--- @include ownership.lua

local function confirmGrant(mutex, id, current, token, lease)
  if current ~= id or redis.call('GET', mutex.fence) ~= token then
    return { ownershipOf(mutex.owner, current), 0, 0, 0 }
  end
  redis.call('PEXPIRE', mutex.owner, lease)
  return token
end
