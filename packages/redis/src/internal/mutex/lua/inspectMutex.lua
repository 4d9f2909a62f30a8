--- Reads who owns a mutex and who waits for it.
---
--- KEYS[1] owner
--- KEYS[2] queue
--- KEYS[3] fence
--- ARGV[1] limit  how many waiters to name
--- Reply: { ownership, token of an owner of ours or '', length of the queue, { { id, waited ms }, ... } }.

local owner, queue, fence = KEYS[1], KEYS[2], KEYS[3]
local limit = tonumber(ARGV[1])

--- @include include/stockSimba.lua
--- @include include/ownership.lua

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local current = redis.call('GET', owner)
local token = current and inboxOf(current) and string.match(redis.call('GET', fence) or '', '^%d*') or ''
local waiters = {}
if limit > 0 then
  local head = redis.call('ZRANGE', queue, 0, limit - 1, 'WITHSCORES')
  for i = 1, #head, 2 do
    local waited = math.max(0, now - tonumber(head[i + 1]) * 1000)
    waiters[#waiters + 1] = { head[i], string.format('%.0f', waited) }
  end
end
return { ownershipOf(current), token, string.format('%.0f', redis.call('ZCARD', queue)), waiters }
