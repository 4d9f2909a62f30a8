--- Makes a contender the owner for a lease, with a new token. An owner keeps its token.
---
--- `acquire` calls `grant`, and `requeue` calls `take`. `handOver`, and `acquireAndRelease` if there are no waiters,
--- call `own` directly: it mints the token from the server's time, and publishes the grant.
--- @include newOwner.lua

-- Leaves the queue and the reservation to the caller. `isOwner` is true if the request is repeated or extends a grant
local function take(mutex, id, lease, isOwner)
  local token = isOwner and redis.call('GET', mutex.fence)
  if not token then
    return own(mutex.owner, mutex.fence, id, lease)
  end
  redis.call('SET', mutex.owner, id, 'PX', lease)
  return token
end

-- Also removes the contender from the queue. A grant to an effect-simba contender ends the reservation for a Simba
-- waiter
local function grant(mutex, id, lease, isOwner)
  local token = take(mutex, id, lease, isOwner)
  redis.call('ZREM', mutex.queue, id)
  redis.call('DEL', mutex.reserved)
  return token
end
