--- Schedules a poll of one more waiter, in case the one before it does not respond.
---
--- If dead waiters cannot be detected, the next eight poll: one of several is more likely alive than the first.
--- @include liveWaiters.lua
--- @include wakeUp.lua

-- Skips the waiter `id` if it is still in the queue. A layer's waiters become unresponsive together, so the waiter that
-- polls belongs to another layer than `inbox` if one is among the next eight
local function scheduleBehind(mutex, id, inbox, millis)
  local page, message, passed = live(mutex, '15'), 'look@@' .. millis, 0
  local chosen, chosenInbox
  for i = 1, #page, 2 do
    local other = page[i] ~= id and passed < 8 and inboxOf(page[i])
    if other then
      passed = passed + 1
      if not mutex.skipDead then
        notify(mutex.owner, page[i], other, message)
      elseif not chosen or (chosenInbox == inbox and other ~= inbox) then
        chosen, chosenInbox = page[i], other
      end
    end
  end
  if chosen then
    notify(mutex.owner, chosen, chosenInbox, message)
  end
end
