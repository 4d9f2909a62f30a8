--- Decides a release: hands the mutex over or frees it, and takes the caller out of the queue.
---
--- - The caller owns it: the first live waiter is granted the mutex, else it is free. Unfair: it is free, and the first
---   waiter is told.
--- - Otherwise the caller leaves the queue. A free mutex is handed over, since those who were told of it may be silent.
---   Else, if the caller was the first, the new first is told when to look.
--- - A next id queues behind all that wait, and is granted the mutex where nobody is before it. Asked again, it keeps
---   its place or its grant.
---
--- Replies the ownership afterwards; with a next id { ownership, its ticket, its token } if it was granted, else
--- { ownership, its ticket, how many are ahead, time in microseconds, last token }.
--- Needs owner, queue, fence, reserved, skipDead.
--- @include grant.lua
--- @include handOver.lua
--- @include ownership.lua
--- @include queue.lua

local function release(id, confirm, lease, unfair, nextId, nextLease)
  local current = redis.call('GET', owner)
  local wasOwner = current == id
  if wasOwner then
    redis.call('DEL', owner)
    current = nil
    if nextId ~= '' and redis.call('EXISTS', queue) == 0 then
      return { nextId .. '@@' .. nextLease, ticketAt(micros()), take(nextId, nextLease) }
    end
  end
  -- An owner does not wait
  local rank = not wasOwner and redis.call('ZRANK', queue, id)
  if rank then
    redis.call('ZREM', queue, id)
  end
  local ticket
  if nextId ~= '' then
    ticket = enter(nextId)
  end
  local isFree, period = false, nil
  if wasOwner or (not current and (rank or nextId ~= '') and redis.call('EXISTS', reserved) == 0) then
    local told
    told, current, period = handOver(id, confirm, lease, nextId, nil, wasOwner and unfair)
    isFree = not told
  elseif rank == 0 then
    tellFirst(math.max(redis.call('PTTL', owner), 0))
  end
  if nextId == '' then
    return ownershipOf(current, period)
  end
  if isFree or current == nextId then
    local token = take(nextId, nextLease, not isFree)
    redis.call('ZREM', queue, nextId)
    return { ownershipOf(nextId), ticket, token }
  end
  local left = redis.call('PTTL', owner)
  keepQueue(left, nextLease, confirm)
  local position = string.format('%.0f', redis.call('ZRANK', queue, nextId))
  return { ownershipOf(current, left), ticket, position, stampNow() }
end
