--- Makes a contender the owner for a lease, with a new token. An owner keeps the token that it has.
---
--- Needs owner, queue, fence, reserved.
--- @include own.lua

local function take(id, lease, isOwner)
  local token = isOwner and redis.call('GET', fence)
  if not token then
    return own(id, lease)
  end
  redis.call('SET', owner, id, 'PX', lease)
  return token
end

local function grant(id, lease, isOwner)
  local token = take(id, lease, isOwner)
  redis.call('ZREM', queue, id)
  redis.call('DEL', reserved)
  return token
end
