--- Puts a waiter into the queue, and keeps the queue from expiring under it.
---
--- It keeps its place, or goes to the place of its ticket, or behind all that wait.
--- Needs queue.
--- @include clock.lua

local function enter(id, ticket)
  local at = micros()
  if ticket and ticket * 1000000 < at + 1 then
    at = math.floor(ticket * 1000000 + 0.5)
  else
    local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2]
    if last then
      at = math.max(at, math.floor(tonumber(last) * 1000000 + 0.5) + 1)
    end
  end
  local text = ticketAt(at)
  if redis.call('ZADD', queue, 'NX', text, id) == 1 then
    return text
  end
  return string.format('%.6f', tonumber(redis.call('ZSCORE', queue, id)))
end

-- Every waiter touches the queue before it sleeps, for longer than it will sleep
local function keepQueue(ownerMillis, lease, confirm)
  local keep = math.max(ownerMillis, 0) + tonumber(lease) + tonumber(confirm)
  if redis.call('PTTL', queue) < keep then
    redis.call('PEXPIRE', queue, string.format('%.0f', keep))
  end
end
