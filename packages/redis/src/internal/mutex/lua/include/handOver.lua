--- Gives a mutex that nobody owns to the first live waiter, and tells the one behind it when to look.
---
--- The message of a grant carries what lets its waiter begin at once: token, time and period of the grant.
--- Unfair: the first is only told that the mutex is free, and keeps its place. The next to ask gets the mutex.
--- Needs owner, queue, fence, reserved, skipDead.
--- @include own.lua
--- @include wakeUp.lua

-- A stock release takes the first waiter out of the queue, and notifies it on its own channel. A waiter that does not
-- listen there yet asks at once, and learns that stock contenders take part. Of the others the nearest ask after the
-- confirm period, since the stock contender may not come
local function warnOfStock(confirm)
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

-- Waiters of one layer fall silent together, so the one that is to look is of another layer where one is near.
-- Returns the id that was told, and the owner
local function handOver(from, confirm, caller, ticket, unfair)
  local told, toldInbox, granted, behind, behindInbox
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
      local done, token = pcall(own, id, confirm, 0)
      if not done then
        -- A fence of the wrong type: the waiter asks, and hears of it too
        tell(id, inbox, message)
        error(token, 0)
      end
      tell(id, inbox, message .. '@@' .. token .. '@@' .. string.format('%.0f', micros()) .. '@@' .. confirm)
      redis.call('DEL', reserved)
      granted = id
    end
    return 'take'
  end)
  if told and not toldInbox then
    warnOfStock(confirm)
  elseif behind then
    tell(behind, behindInbox, 'look@@' .. confirm)
  end
  return told, granted
end
