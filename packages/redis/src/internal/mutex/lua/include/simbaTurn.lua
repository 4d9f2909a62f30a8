--- Notifies a Simba waiter that its turn has come.
---
--- The Simba waiter then acquires the free mutex itself. Other waiters hold back for the confirm period.
---
--- When a Simba contender releases the mutex, it removes the first waiter from the queue and notifies it on that
--- waiter's own channel. So any effect-simba waiter that is not subscribed to its own channel is asked to poll
--- immediately, because the reply shows that Simba contenders take part. The first eight subscribed waiters poll after
--- the confirm period, because the Simba waiter may not respond.
--- @include wakeUp.lua

local function callSimba(mutex, id, message, confirm)
  local owner, queue, skipDead = mutex.owner, mutex.queue, mutex.skipDead
  redis.call('ZREM', queue, id)
  notify(owner, id, nil, message)
  redis.call('SET', mutex.reserved, id, 'PX', confirm)
  local waiters, channels, listening = redis.call('ZRANGE', queue, '0', skipDead and '127' or '7'), {}, 0
  for i, waiter in ipairs(waiters) do
    channels[i] = owner .. ':' .. waiter
  end
  local counts = skipDead and waiters[1] and redis.call('PUBSUB', 'NUMSUB', unpack(channels))
  for i, waiter in ipairs(waiters) do
    local inbox = inboxOf(waiter)
    if inbox and not (counts and counts[2 * i] > 0) then
      notify(owner, waiter, inbox, 'look@@0')
    elseif inbox and listening < 8 then
      listening = listening + 1
      notify(owner, waiter, inbox, 'look@@' .. confirm)
    end
  end
end
