--- Makes a contender the owner for a lease, with a new token. An owner keeps the token that it has.
--- @include own.lua

local function take(mutex, id, lease, isOwner)
  local token = isOwner and redis.call('GET', mutex.fence)
  if not token then
    return own(mutex.owner, mutex.fence, id, lease)
  end
  redis.call('SET', mutex.owner, id, 'PX', lease)
  return token
end

local function grant(mutex, id, lease, isOwner)
  local token = take(mutex, id, lease, isOwner)
  redis.call('ZREM', mutex.queue, id)
  redis.call('DEL', mutex.reserved)
  return token
end
