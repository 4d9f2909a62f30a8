--- Extends a grant to a full lease, for a waiter that started when it received the grant message.
---
--- Never grants the mutex.
---
--- The token distinguishes this grant from another one to the same id. Returns the token, or else the same as a refused
--- try.
--- @include ownership.lua

local function confirmGrant(owner, fence, id, current, token, lease)
  if current ~= id or redis.call('GET', fence) ~= token then
    return { ownershipOf(owner, current), 0, 0, 0 }
  end
  redis.call('PEXPIRE', owner, lease)
  return token
end
