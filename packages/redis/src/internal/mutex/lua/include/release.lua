--- Decides a release: hands the mutex over or frees it, and takes the caller out of the queue.
---
--- Needs owner, queue, fence, reserved, skipDead.
--- @include clock.lua
--- @include grant.lua
--- @include handOver.lua
--- @include ownership.lua
--- @include queue.lua
--- @include wakeUp.lua

-- The owner key has been deleted if it was the caller's
local function leave(current, id, confirm, unfair, nextId, lease, spare)
  local rank = redis.call('ZRANK', queue, id)
  if rank then
    redis.call('ZREM', queue, id)
  end
  local ticket, token = '', ''
  if nextId ~= '' then
    ticket = enter(nextId)
  end
  local isFree = false
  if current == id then
    isFree = not handOver(id, confirm, nextId, nil, unfair)
  elseif nextId ~= '' and not current and redis.call('EXISTS', reserved) == 0 then
    isFree = not handOver(id, confirm, nextId)
  elseif rank == 0 then
    tellFirst(math.max(redis.call('PTTL', owner), 0))
  end
  if nextId == '' then
    return ownership()
  end
  if isFree or current == nextId then
    token = take(nextId, lease, spare, not isFree)
    redis.call('ZREM', queue, nextId)
  else
    keepQueue(lease, confirm)
  end
  return { ownership(), ticket, token }
end

local function release(id, confirm, unfair, nextId, lease, spare)
  local current = redis.call('GET', owner)
  if current == id then
    redis.call('DEL', owner)
    if redis.call('EXISTS', queue) == 0 then
      if nextId == '' then
        return '@@'
      end
      return { nextId .. '@@' .. lease, ticketAt(micros()), take(nextId, lease, spare) }
    end
  end
  return leave(current, id, confirm, unfair, nextId, lease, spare)
end
