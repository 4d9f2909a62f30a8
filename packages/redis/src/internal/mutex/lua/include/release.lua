--- Decides a release: hands the mutex over or frees it, and takes the caller out of the queue.
---
--- - The caller owns it: the first live waiter is granted the mutex, else it is free. Unfair: it is free, and the first
---   waiter is told.
---   Reserved tokens after the last that it used are given back.
--- - Otherwise the caller leaves the queue. A free mutex is handed over, since those who were told of it may be silent.
---   Else, if the caller was the first, the new first is told when to look.
--- - A next id queues behind all that wait, and is granted the mutex where nobody is before it. Asked again, it keeps
---   its place or its grant.
---
--- Replies the ownership afterwards; with a next id { ownership, its ticket, its token } if it was granted, else
--- { ownership, its ticket, time in microseconds, last token }.
--- Needs owner, queue, fence, reserved, skipDead.
--- @include grant.lua
--- @include handOver.lua
--- @include ownership.lua
--- @include queue.lua

local function release(id, confirm, unfair, nextId, lease, spare, last)
  local current = redis.call('GET', owner)
  local wasOwner = current == id
  if wasOwner then
    if last then
      giveBack(last)
    end
    redis.call('DEL', owner)
    current = nil
    if nextId ~= '' and redis.call('EXISTS', queue) == 0 then
      return { nextId .. '@@' .. lease, ticketAt(micros()), take(nextId, lease, spare) }
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
  local isFree = false
  if wasOwner or (not current and (rank or nextId ~= '') and redis.call('EXISTS', reserved) == 0) then
    local told
    told, current = handOver(id, confirm, nextId, nil, wasOwner and unfair)
    isFree = not told
  elseif rank == 0 then
    tellFirst(math.max(redis.call('PTTL', owner), 0))
  end
  if nextId == '' then
    return ownershipOf(current, wasOwner and confirm)
  end
  if isFree or current == nextId then
    local token = take(nextId, lease, spare, not isFree)
    redis.call('ZREM', queue, nextId)
    return { ownershipOf(nextId), ticket, token }
  end
  local left = redis.call('PTTL', owner)
  keepQueue(left, lease, confirm)
  return { ownershipOf(current, left), ticket, stampNow() }
end
