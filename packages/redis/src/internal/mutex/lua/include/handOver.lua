--- Hands a mutex that nobody owns to the first live waiter.
---
--- A fresh waiter is granted a whole lease. It queued within the last confirm period and its layer listens, so it is
--- almost certainly responsive. Any other is granted the confirm period, and the waiter behind it is notified when to
--- poll. The message of a grant carries what its waiter needs to start at once: token, time and period of the grant. If
--- no lease is passed, no waiter is fresh.
--- Needs owner, queue, fence, reserved, skipDead.
--- @include own.lua
--- @include liveWaiters.lua
--- @include scheduleBehind.lua
--- @include wakeUp.lua

-- Returns the id that was notified, the owner, and the period of its grant
local function handOver(from, confirm, lease, caller, ticket)
  local head = live('0')
  local id = head[1]
  if not id or id == caller or (ticket and ticket < tonumber(head[2])) then
    return
  end
  local inbox, message = inboxOf(id), 'released@@' .. from
  if not inbox then

    --- @include simbaTurn.lua

    callSimba(id, message, confirm)
    return id
  end
  -- Judged by the clock of the server alone. If it was set back, no waiter is fresh
  local age = micros() - math.floor(head[2] * 1000000 + 0.5)
  local isWhole = lease and skipDead and age >= 0 and age <= confirm * 1000
  local period = isWhole and lease or confirm
  local done, token = pcall(own, id, period)
  if not done then
    -- A fence of the wrong type: the waiter sends a request, and gets the error too
    notify(id, inbox, message)
    error(token, 0)
  end
  notify(id, inbox, message .. '@@' .. token .. '@@' .. string.format('%.0f', micros()) .. '@@' .. period)
  redis.call('ZREM', queue, id)
  redis.call('DEL', reserved)
  if not isWhole then
    scheduleBehind(id, inbox, confirm)
  end
  return id, id, period
end
