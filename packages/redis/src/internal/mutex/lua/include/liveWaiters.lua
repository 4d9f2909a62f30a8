--- Visits the live waiters in order. A waiter is dead when nobody subscribes to its channel.
--- A Simba waiter of a Cluster may subscribe at another node: where only ours are skipped, it counts as alive.
---
--- It removes the dead on its way, in growing pages: each dead entry is paid for once.
--- `visit` is told the id, the channel of a layer of ours, and the ticket. It returns 'take' to remove a waiter, 'last'
--- to remove it and end at once, 'pass' to go on, 'stop' to end.
--- Needs owner, queue, skipDead.
--- @include contenderIds.lua

local function walk(visit)
  local offset, size = 0, 2
  local stopped = false
  while not stopped do
    local page = redis.call('ZRANGE', queue, offset, offset + size - 1, 'WITHSCORES')
    if #page == 0 then
      return
    end
    local gone, inboxes, channels = {}, {}, {}
    for i = 1, #page, 2 do
      inboxes[i] = inboxOf(page[i])
      channels[#channels + 1] = inboxes[i] or owner .. ':' .. page[i]
    end
    local counts = skipDead and redis.call('PUBSUB', 'NUMSUB', unpack(channels))
    for i = 1, #page, 2 do
      local id = page[i]
      local isCounted = counts and (skipDead == '1' or inboxes[i])
      if isCounted and tonumber(counts[i + 1]) == 0 then
        gone[#gone + 1] = id
      elseif not stopped then
        local verdict = visit(id, inboxes[i], tonumber(page[i + 1]))
        if verdict == 'last' then
          gone[#gone + 1] = id
          stopped = true
          break
        elseif verdict == 'take' then
          gone[#gone + 1] = id
        elseif verdict == 'stop' then
          stopped = true
        else
          offset = offset + 1
        end
      end
    end
    if #gone > 0 then
      redis.call('ZREM', queue, unpack(gone))
    end
    size = math.min(size * 4, 128)
  end
end
