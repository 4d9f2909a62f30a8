--- Decides a release.
---
--- - The caller owns it: the first live waiter is granted the mutex, otherwise it is free.
--- - Otherwise the caller leaves the queue. A free mutex is handed over, because the waiters that were notified may be
---   unresponsive, and a Simba release may have notified the caller alone. If the mutex is owned and the caller was the
---   first, the new first waiter is notified when to poll.
--- - A next id queues behind all waiters, and is granted the mutex if nobody is ahead of it. If the request is
---   repeated, it keeps its place or its grant.
---
--- Returns the ownership afterwards; with a next id { ownership, its ticket, its token } if it was granted, otherwise {
--- ownership, its ticket, how many are ahead, time in microseconds, last token }.
--- Needs owner, queue, fence, reserved, skipDead.
--- @include grant.lua
--- @include handOver.lua
--- @include ownership.lua
--- @include queue.lua

local function release(id, current, confirm, lease, nextId, nextLease)
  local wasOwner = current == id
  if wasOwner then
    redis.call('DEL', owner)
    current = nil
  end
  -- An owner does not wait
  local rank = not wasOwner and redis.call('ZRANK', queue, id)
  if rank then
    redis.call('ZREM', queue, id)
  end
  local ticket = nextId ~= '' and enter(nextId)
  local isFree, period = false, nil
  if wasOwner or (not current and redis.call('EXISTS', reserved) == 0) then
    local notified
    notified, current, period = handOver(id, confirm, lease, nextId)
    isFree = not notified
  elseif rank == 0 then
    scheduleBehind(nil, nil, math.max(redis.call('PTTL', owner), 0))
  end
  if not ticket then
    return ownershipOf(current, period)
  end
  if isFree or current == nextId then
    local token = take(nextId, nextLease, not isFree)
    redis.call('ZREM', queue, nextId)
    return { ownershipOf(nextId), ticket, token }
  end
  local left = redis.call('PTTL', owner)
  keepQueue(left, nextLease, confirm)
  return { ownershipOf(current, left), ticket, tostring(redis.call('ZRANK', queue, nextId)), stampNow() }
end
