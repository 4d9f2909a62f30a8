--- Decides a release, or undoes an abandoned acquire.
---
--- The caller may own the mutex, be waiting in the queue, or neither. Called by `acquireAndRelease`, or by `requeue` if
--- the release queues another id.
---
--- - The caller owns the mutex: the first live waiter is granted it. If that waiter is a Simba contender, it is instead
---   notified that the mutex is free. Without a live waiter, the mutex becomes free.
--- - The caller does not own the mutex: it leaves the queue if it is queued. A free mutex is handed over, because
---   notified waiters may be unresponsive, and a Simba release may have notified only the caller. If the mutex is owned
---   or reserved and the caller was first in the queue, the new first waiter is sent the time of its next poll.
---
--- `nextId` is the id that `requeue` has queued for the caller. If it is first in the queue, nobody is notified, and
--- `requeue` grants it the mutex.
--- @include handOver.lua

-- Returns the new owner, and whether the mutex is free and no waiter was notified
local function release(mutex, id, current, confirm, lease, nextId)
  local wasOwner = current == id
  -- An owner is not in the queue
  local rank = not wasOwner and redis.call('ZRANK', mutex.queue, id)
  if rank then
    redis.call('ZREM', mutex.queue, id)
  end
  if wasOwner or (not current and redis.call('PTTL', mutex.reserved) <= 0) then
    local done, notified, granted = pcall(handOver, mutex, id, confirm, lease, nextId)
    if wasOwner and not (done and granted) then
      redis.call('DEL', mutex.owner)
    end
    if not done then
      error(notified, 0)
    end
    return granted, not notified
  elseif rank == 0 then

    --- @include scheduleBehind.lua

    scheduleBehind(mutex, nil, nil, math.max(redis.call('PTTL', mutex.owner), 0))
  end
  return current
end
