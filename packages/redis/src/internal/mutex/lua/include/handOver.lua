--- Hands a free or released mutex to the first live waiter.
---
--- An effect-simba waiter is granted the mutex. A Simba waiter is notified and acquires the mutex itself: see
--- simbaTurn.lua. Called by `acquire`, `release` and `forceRelease`, which does not pass a `lease`.
---
--- A waiter is fresh if it queued within the last confirm period and its layer is subscribed. It is almost certainly
--- responsive, so it is granted a full lease. Any other waiter is granted only the confirm period, and the waiter
--- behind it is sent the time of its next poll. Without a `lease`, no waiter is fresh. The grant message contains
--- everything that the waiter needs to start immediately: the token, its lead over the clock, and the grant's period.
---
--- Callers ensure that the mutex is not reserved: a grant to an effect-simba waiter deletes the reservation, `acquire`
--- and `release` check for one if the mutex is free, and `forceRelease` deletes it.
---
--- Some files are included inside a branch, to save the other branches the cost of defining their functions.
--- @include newOwner.lua
--- @include wakeUp.lua

-- Returns the notified waiter's id, and returns it a second time if that waiter now owns the mutex. Returns nothing if
-- the caller is first or nobody is waiting
local function handOver(mutex, from, confirm, lease, caller, ticket)
  local owner, skipDead = mutex.owner, mutex.skipDead
  local id, score = unpack(redis.call('ZRANGE', mutex.queue, '0', '0', 'WITHSCORES'))
  if not id or id == caller or (ticket and ticket < tonumber(score)) then
    return
  end
  local inbox = inboxOf(id)
  local canBeDead = skipDead == '1' or (skipDead and inbox)
  if canBeDead and redis.call('PUBSUB', 'NUMSUB', inbox or owner .. ':' .. id)[2] == 0 then

    --- @include liveWaiters.lua

    live(mutex, '15')
    return handOver(mutex, from, confirm, lease, caller, ticket)
  elseif not inbox then

    --- @include simbaTurn.lua

    callSimba(mutex, id, 'released@@' .. from, confirm)
    return id
  end
  -- Only the server's clock measures the age. If it was set back, the waiter is not fresh
  local age = now - math.floor(score * 1000000 + 0.5)
  local isWhole = lease and skipDead and age >= 0 and age <= confirm * 1000
  local period = isWhole and lease or confirm
  local done, token, ahead = pcall(own, owner, mutex.fence, id, period)
  if not done then
    -- The fence has the wrong type. Make the waiter poll, so that it receives the error too
    notify(owner, id, inbox, 'look@@0')
    error(token, 0)
  end
  notify(owner, id, inbox, 'granted@@' .. token .. '@@' .. string.format('%.0f', ahead) .. '@@' .. period)
  redis.call('ZREM', mutex.queue, id)
  if not isWhole then

    --- @include scheduleBehind.lua

    scheduleBehind(mutex, id, inbox, confirm)
  end
  return id, id
end
