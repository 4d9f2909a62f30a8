--- Reads a mutex's owner and waiters.
---
--- Returns { ownership, an effect-simba owner's token or '', queue length, { { id, waited ms }, ... } }.
--- @include clock.lua
--- @include ownership.lua
--- @include contenderIds.lua

local function inspect(mutex, current, limit)
  local token = current and layerOf(current) and redis.call('GET', mutex.fence) or ''
  local waiters = {}
  if limit > 0 then
    local head = redis.call('ZRANGE', mutex.queue, 0, limit - 1, 'WITHSCORES')
    for i = 1, #head, 2 do
      local waited = math.max(0, now / 1000 - tonumber(head[i + 1]) * 1000)
      waiters[#waiters + 1] = { head[i], string.format('%.0f', waited) }
    end
  end
  return { ownershipOf(mutex.owner, current), token, string.format('%.0f', redis.call('ZCARD', mutex.queue)), waiters }
end
