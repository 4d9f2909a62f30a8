--- A mutex that only live waiters of ours want, as far as this looks: the same as in full, by fewer commands.
---
--- Each function gives up as if it had done nothing.
--- Needs owner, queue, fence, call, attempt, skipDead, plainConfirm, fenceMillis, head.
--- @include clock.lua
--- @include stockSimba.lua

-- To the first of two places of different layers
local function pass(id)
  local heir, behind = head[1], head[3]
  if not skipDead or not heir or heir == id or behind == id then
    return
  end
  local inbox = isOurTicket(tonumber(head[2])) and inboxOf(heir)
  local other = not behind and '' or isOurTicket(tonumber(head[4])) and inboxOf(behind)
  local counts = inbox and other and other ~= inbox and call('PUBSUB', 'NUMSUB', inbox, other)
  if not counts or tonumber(counts[2]) == 0 or (behind and tonumber(counts[4]) == 0) then
    return
  end
  local token = string.format('%.0f', micros())
  local last = attempt('SET', fence, token, 'PX', fenceMillis, 'GET')
  local number = not last and 0 or tonumber(last)
  if not number or number >= micros() then
    if type(last) == 'string' then
      call('SET', fence, last, 'PX', fenceMillis)
    end
    return
  end
  call('SET', owner, heir, 'PX', plainConfirm)
  call('ZREM', queue, heir, id)
  call('PUBLISH', inbox, heir .. '@@released@@' .. id)
  if behind then
    call('PUBLISH', other, behind .. '@@look@@' .. plainConfirm)
  end
  return heir .. '@@' .. plainConfirm
end

-- For the first time
local function queueUp(id, lease, confirm)
  local current = attempt('GET', owner)
  if type(current) ~= 'string' or current == id or not inboxOf(current) then
    return
  end
  local head, last = attempt('ZRANGE', queue, 0, 15, 'WITHSCORES'), nil
  for k = 2, #head, 2 do
    last = tonumber(head[k])
    if not isOurTicket(last) then
      return
    end
  end
  if #head == 0 and type(attempt('GET', fence)) == 'table' then
    return
  end
  local position = #head / 2
  if position == 16 then
    position, last = call('ZCARD', queue), tonumber(call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2])
  end
  local ticket = ticketAt(last and math.max(micros(), math.floor(last * 1000000 + 0.5) + 1) or micros())
  local added = attempt('ZADD', queue, 'NX', ticket, id)
  if added ~= 1 then
    return
  end
  local left = call('PTTL', owner)
  local keep = math.max(left, 0) + lease + confirm
  if call('PTTL', queue) < keep then
    call('PEXPIRE', queue, string.format('%.0f', keep))
  end
  return { current .. '@@' .. string.format('%.0f', left), ticket, string.format('%.0f', position), '0' }
end
