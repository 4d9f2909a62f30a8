--- Makes a contender the owner for a lease, with a new token unless it already owns the mutex.
---
--- `acquire` calls `grant`, and `requeue` calls `take`. `handOver`, and `acquireAndRelease` if there are no waiters,
--- call `own` directly: it mints the token from the server's time, and publishes the grant.
--- @include newOwner.lua

-- The caller must update the queue and the reservation. `isOwner` is true if the request is repeated or extends a
-- grant
local function take(mutex, id, lease, isOwner)
  local token = isOwner and redis.call('GET', mutex.fence)
  if not token then
    return own(mutex.owner, mutex.fence, id, lease)
  end
  redis.call('SET', mutex.owner, id, 'PX', lease)
  return token
end

-- Removes the contender from the queue, and ends a reservation for a Simba waiter
local function grant(mutex, id, lease, isOwner)
  local token = take(mutex, id, lease, isOwner)
  redis.call('ZREM', mutex.queue, id)
  redis.call('DEL', mutex.reserved)
  return token
end
