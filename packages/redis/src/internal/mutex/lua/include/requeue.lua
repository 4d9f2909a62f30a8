--- Decides a release that queues another id behind all waiters.
---
--- The queued id is granted the mutex if nobody is ahead of it. If the request is repeated, the id keeps its place or
--- its grant. Returns { ownership, ticket, token } if the id was granted the mutex, otherwise { ownership, ticket,
--- number of waiters ahead, age of the ticket, age of the last token }. If the id counted as dead and lost its place,
--- the number is 0.
--- @include queue.lua
--- @include release.lua
--- @include ownership.lua

local function requeue(mutex, id, current, confirm, lease, nextId, nextLease)
  local owner, queue = mutex.owner, mutex.queue
  local done, ticket = pcall(enter, queue, nextId)
  if not done then
    -- The queue has the wrong type, or the server is out of memory. Release the mutex anyway
    release(mutex, id, current, confirm, lease)
    error(ticket, 0)
  end
  local after, isFree = release(mutex, id, current, confirm, lease, nextId)
  if isFree or after == nextId then

    --- @include becomeOwner.lua

    local token = take(mutex, nextId, nextLease, not isFree)
    redis.call('ZREM', queue, nextId)
    return { ownershipOf(owner, nextId), ticket, token }
  end
  local left = redis.call('PTTL', owner)
  keepQueue(queue, left, nextLease, confirm)
  return { ownershipOf(owner, after, left), ticket, redis.call('ZRANK', queue, nextId) or 0, ages(mutex.fence, ticket) }
end
