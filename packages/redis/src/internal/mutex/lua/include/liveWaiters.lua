--- Reads the live waiters at the head of the queue.
---
--- A waiter is dead if nobody is subscribed to its channel. On a Cluster, a Simba waiter may be subscribed at another
--- node, so it counts as alive. Without `skipDead`, every waiter counts as alive.
--- @include contenderIds.lua

-- Removes dead waiters up to index `last` of the queue. Returns the live ones as a list of alternating ids and tickets.
-- If all are dead, continues with later waiters
local function live(mutex, last)
  local page = redis.call('ZRANGE', mutex.queue, '0', last, 'WITHSCORES')
  local skipDead = mutex.skipDead
  if not skipDead or not page[1] then
    return page
  end
  local channels, alive, dead = {}, {}, {}
  for i = 1, #page, 2 do
    channels[#channels + 1] = inboxOf(page[i]) or mutex.owner .. ':' .. page[i]
  end
  local counts = redis.call('PUBSUB', 'NUMSUB', unpack(channels))
  for i = 1, #page, 2 do
    if counts[i + 1] == 0 and (skipDead == '1' or layerOf(page[i])) then
      dead[#dead + 1] = page[i]
    else
      alive[#alive + 1] = page[i]
      alive[#alive + 1] = page[i + 1]
    end
  end
  if dead[1] then
    redis.call('ZREM', mutex.queue, unpack(dead))
  end
  return alive[1] and alive or live(mutex, '127')
end
