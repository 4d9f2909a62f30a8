--- Makes a contender the owner for a lease, with a new token. An owner keeps the token that it has.
---
--- At least `spare` tokens are reserved.
--- Needs owner, queue, fence, reserved.
--- @include own.lua

local function take(id, lease, spare, isOwner)
  local token, had
  if isOwner then
    token, had = parseFence(redis.call('GET', fence))
  end
  if not token then
    return own(id, lease, spare)
  end
  if spare > had then
    writeFence(token, spare)
  end
  redis.call('SET', owner, id, 'PX', lease)
  return token
end

local function grant(id, lease, spare, isOwner)
  local token = take(id, lease, spare, isOwner)
  redis.call('ZREM', queue, id)
  redis.call('DEL', reserved)
  return token
end
