--- Schedules the next waiter's poll, in case the waiter ahead of it does not respond.
---
--- If dead waiters cannot be detected, the next eight waiters poll, because at least one of them is likely to be alive.
--- @include liveWaiters.lua
--- @include wakeUp.lua

-- Skips the waiter `id` if it is still in the queue. Among the next eight, prefers a waiter with an inbox other
-- than `inbox`, because all waiters in a layer become unresponsive together
local function scheduleBehind(mutex, id, inbox, millis)
  local message, passed = 'look@@' .. millis, 0
  local chosen, chosenInbox
  for _, waiter in ipairs(live(mutex, '15')) do
    local other = waiter ~= id and passed < 8 and inboxOf(waiter)
    if other then
      passed = passed + 1
      if not mutex.skipDead then
        notify(mutex.owner, waiter, other, message)
      elseif not chosen or (chosenInbox == inbox and other ~= inbox) then
        chosen, chosenInbox = waiter, other
      end
    end
  end
  if chosen then
    notify(mutex.owner, chosen, chosenInbox, message)
  end
end
