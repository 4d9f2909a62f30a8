--- Reads the live waiters at the head of the queue.
---
--- A waiter is dead if nobody is subscribed to its channel. On a Cluster, a Simba waiter always counts as alive,
--- because it may be subscribed on another node. Without `skipDead`, every waiter counts as alive.
--- @include wakeUp.lua

-- Removes dead waiters up to index `last` in the queue, and returns the live ones. If all are dead, continues
-- with later waiters
local function live(mutex, last)
  local waiters, skipDead = redis.call('ZRANGE', mutex.queue, '0', last), mutex.skipDead
  if not skipDead or not waiters[1] then
    return waiters
  end
  local channels, alive, dead = {}, {}, {}
  for i, waiter in ipairs(waiters) do
    channels[i] = inboxOf(waiter) or mutex.owner .. ':' .. waiter
  end
  local counts = redis.call('PUBSUB', 'NUMSUB', unpack(channels))
  for i, waiter in ipairs(waiters) do
    if counts[2 * i] == 0 and (skipDead == '1' or layerOf(waiter)) then
      dead[#dead + 1] = waiter
    else
      alive[#alive + 1] = waiter
    end
  end
  if dead[1] then
    redis.call('ZREM', mutex.queue, unpack(dead))
  end
  return alive[1] and alive or live(mutex, '127')
end
