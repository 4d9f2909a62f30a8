--- Makes a contender the owner for a lease, with a new token. An owner keeps its token.
---
--- `acquire` grants with `grant`, and `requeue` with `take`. `handOver`, and a grant without waiters in
--- `acquireAndRelease`, use `own`: it mints the token and its stride from the server's time, and publishes the grant.
--- @include newOwner.lua

-- The caller updates the queue and the reservation. `isOwner`: the request is repeated, or extends a grant
local function take(mutex, id, lease, isOwner)
  local token = isOwner and redis.call('GET', mutex.fence)
  if not token then
    return own(mutex.owner, mutex.fence, id, lease)
  end
  redis.call('SET', mutex.owner, id, 'PX', lease)
  return token
end

-- For a contender that may be in the queue. A grant to an effect-simba contender ends the reservation for a Simba
-- waiter
local function grant(mutex, id, lease, isOwner)
  local token = take(mutex, id, lease, isOwner)
  redis.call('ZREM', mutex.queue, id)
  redis.call('DEL', mutex.reserved)
  return token
end
