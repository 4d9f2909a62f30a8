--- Decides a release: hands the mutex over or frees it, and takes the caller out of the queue.
---
--- Needs owner, queue, fence, reserved, skipDead.
--- @include grant.lua
--- @include handOver.lua
--- @include ownership.lua
--- @include queue.lua

-- A next id queues behind all that wait, and is granted the mutex where nobody does
local function release(id, confirm, unfair, nextId, lease, spare)
  local current = redis.call('GET', owner)
  local wasOwner = current == id
  if wasOwner then
    redis.call('DEL', owner)
    current = nil
  end
  local rank = redis.call('ZRANK', queue, id)
  if rank then
    redis.call('ZREM', queue, id)
  end
  local ticket, token = '', ''
  if nextId ~= '' then
    ticket = enter(nextId)
  end
  local isFree = false
  if wasOwner or (nextId ~= '' and not current and redis.call('EXISTS', reserved) == 0) then
    local told
    told, current = handOver(id, confirm, nextId, nil, wasOwner and unfair)
    isFree = not told
  elseif rank == 0 then
    tellFirst(math.max(redis.call('PTTL', owner), 0))
  end
  if nextId == '' then
    return ownershipOf(current)
  end
  if isFree or current == nextId then
    token = take(nextId, lease, spare, not isFree)
    redis.call('ZREM', queue, nextId)
    current = nextId
  else
    keepQueue(lease, confirm)
  end
  return { ownershipOf(current), ticket, token }
end
