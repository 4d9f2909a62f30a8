--- Reads a mutex's owner and waiters.
---
--- Returns { ownership, token of an effect-simba owner or '', length of the queue, { { id, waited ms }, ... } }.
--- @include clock.lua
--- @include ownership.lua
--- @include contenderIds.lua

local function inspect(owner, queue, fence, current, limit)
  local token = current and layerOf(current) and redis.call('GET', fence) or ''
  local waiters = {}
  if limit > 0 then
    local head = redis.call('ZRANGE', queue, 0, limit - 1, 'WITHSCORES')
    for i = 1, #head, 2 do
      local waited = math.max(0, micros() / 1000 - tonumber(head[i + 1]) * 1000)
      waiters[#waiters + 1] = { head[i], string.format('%.0f', waited) }
    end
  end
  return { ownershipOf(owner, current), token, string.format('%.0f', redis.call('ZCARD', queue)), waiters }
end
