--- Gives a mutex that nobody owns to the first live waiter.
---
--- A fresh waiter is granted a whole lease. It queued within the last confirm period, and its layer listens, so it is
--- hardly silent. Any other is granted the confirm period, and the waiter behind it is notified when to look.
--- The message of a grant carries what lets its waiter begin at once: token, time and period of the grant.
--- Without a lease nobody is fresh.
--- Unfair: the first is only told that the mutex is free, and keeps its place. The next to ask gets the mutex.
--- Needs owner, queue, fence, reserved, skipDead.
--- @include own.lua
--- @include wakeUp.lua

-- A Simba release takes the first waiter out of the queue, and notifies it on its own channel. A waiter that does not
-- listen there yet asks at once, and learns that Simba contenders take part. Of the others the nearest ask after the
-- confirm period, since the Simba contender may not come
local function warnOfSimba(confirm)
  local waiters, channels, listening = redis.call('ZRANGE', queue, 0, skipDead and 127 or 7), {}, 0
  for i, waiter in ipairs(waiters) do
    channels[i] = owner .. ':' .. waiter
  end
  local counts = skipDead and redis.call('PUBSUB', 'NUMSUB', unpack(channels))
  for i, waiter in ipairs(waiters) do
    local inbox = inboxOf(waiter)
    if inbox and not (counts and tonumber(counts[2 * i]) > 0) then
      tell(waiter, inbox, 'look@@0')
    elseif inbox and listening < 8 then
      listening = listening + 1
      tell(waiter, inbox, 'look@@' .. confirm)
    end
  end
end

-- By the clock of the server alone. One that was set back makes nobody fresh
local function isFresh(ticket, confirm)
  local age = micros() - math.floor(ticket * 1000000 + 0.5)
  return age >= 0 and age <= confirm * 1000
end

-- Waiters of one layer fall silent together, so the one that is to look is of another layer where one is near.
-- Returns the id that was notified, the owner, and the period of its grant
local function handOver(from, confirm, lease, caller, ticket, unfair)
  local told, toldInbox, granted, behind, behindInbox
  local period, isWhole = confirm, false
  local passed = 0
  walk(function(id, inbox, score)
    if told then
      if not toldInbox then
        return 'stop'
      elseif inbox then
        passed = passed + 1
        if not skipDead then
          tell(id, inbox, 'look@@' .. confirm)
          return passed == 8 and 'stop' or 'pass'
        end
        local elsewhere = inbox ~= toldInbox
        if elsewhere or not behind then
          behind, behindInbox = id, inbox
        end
        if elsewhere or passed == 8 then
          return 'stop'
        end
      end
      return 'pass'
    end
    if id == caller or (ticket and ticket < score) then
      return 'stop'
    end
    told, toldInbox = id, inbox
    local message = 'released@@' .. from
    if not inbox then
      tell(id, inbox, message)
      redis.call('SET', reserved, id, 'PX', confirm)
    elseif unfair then
      tell(id, inbox, message)
      return 'pass'
    else
      if lease and skipDead and isFresh(score, confirm) then
        period, isWhole = lease, true
      end
      local done, token = pcall(own, id, period)
      if not done then
        -- A fence of the wrong type: the waiter asks, and hears of it too
        tell(id, inbox, message)
        error(token, 0)
      end
      tell(id, inbox, message .. '@@' .. token .. '@@' .. string.format('%.0f', micros()) .. '@@' .. period)
      redis.call('DEL', reserved)
      granted = id
    end
    return isWhole and 'last' or 'take'
  end)
  if told and not toldInbox then
    warnOfSimba(confirm)
  elseif behind then
    tell(behind, behindInbox, 'look@@' .. confirm)
  end
  return told, granted, period
end
