--- Decides an acquire: grants the mutex, hands it to the waiter whose turn it is, or refuses and queues the caller.
---
--- - Nobody owns the mutex: it is handed to the first live waiter ahead of the caller. If there is none, the caller is
---   granted the mutex.
--- - The caller owns the mutex: its lease is extended to its full duration, and it keeps its token.
--- - Otherwise the caller is refused. In mode 'wait', it is queued with its ticket. If the mutex is reserved for a
---   Simba waiter, a caller among the first eight is sent the time of its next poll, because the Simba waiter may not
---   respond.
---
--- Returns a grant's token. A refusal is { ownership, ticket or 0, position, 1 if Simba contenders take part }. In mode
--- 'wait', the ages of the ticket and the last token follow, which show whether a grant message is current.
--- @include contenderIds.lua
--- @include ownership.lua

local function acquire(mutex, id, current, mode, lease, confirm, ticket)
  local owner, queue = mutex.owner, mutex.queue
  local isGranted, holdsBack = current == id, false
  if not current then

    --- @include claim.lua

    isGranted, current, holdsBack = claim(mutex, id, confirm, lease, ticket)
  end
  if isGranted then

    --- @include becomeOwner.lua

    return grant(mutex, id, lease, current)
  end
  local foreign = current and not layerOf(current)
  if foreign and redis.call('GET', mutex.reserved) == current then
    -- The Simba waiter whose turn it was now owns the mutex
    redis.call('DEL', mutex.reserved)
  end
  if mode == 'try' then
    return { ownershipOf(owner, current), 0, 0, 0 }
  end

  --- @include queue.lua

  local mine, ahead = enter(queue, id, ticket)
  local left = redis.call('PTTL', owner)
  keepQueue(queue, left, lease, confirm)
  -- Checking the first waiter is enough, because the others are notified when a later Simba waiter's turn comes
  foreign = foreign or ahead > 0 and not layerOf(redis.call('ZRANGE', queue, '0', '0')[1])
  if holdsBack and ahead < 8 then

    --- @include wakeUp.lua

    notify(owner, id, inboxOf(id), 'look@@' .. redis.call('PTTL', mutex.reserved))
  end
  return { ownershipOf(owner, current, left), mine, ahead, (holdsBack or foreign) and 1 or 0, ages(mutex.fence, mine) }
end
