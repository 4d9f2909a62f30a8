--- Calls a Simba waiter: it takes the free mutex by itself, and ours hold back for the confirm period.
---
--- A Simba release takes the first waiter out of the queue, and notifies it on its own channel. A waiter of ours that
--- does not listen there yet asks at once, and learns that Simba contenders take part. Of the others the nearest ask
--- after the confirm period, since the Simba contender may not come.
--- Needs owner, queue, reserved, skipDead.
--- @include contenderIds.lua
--- @include wakeUp.lua

local function callSimba(id, message, confirm)
  redis.call('ZREM', queue, id)
  notify(id, nil, message)
  redis.call('SET', reserved, id, 'PX', confirm)
  local waiters, channels, listening = redis.call('ZRANGE', queue, '0', skipDead and '127' or '7'), {}, 0
  for i, waiter in ipairs(waiters) do
    channels[i] = owner .. ':' .. waiter
  end
  local counts = skipDead and waiters[1] and redis.call('PUBSUB', 'NUMSUB', unpack(channels))
  for i, waiter in ipairs(waiters) do
    local inbox = inboxOf(waiter)
    if inbox and not (counts and counts[2 * i] > 0) then
      notify(waiter, inbox, 'look@@0')
    elseif inbox and listening < 8 then
      listening = listening + 1
      notify(waiter, inbox, 'look@@' .. confirm)
    end
  end
end
