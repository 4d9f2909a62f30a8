--- Puts a waiter into the queue, and keeps the queue from expiring while it waits.
---
--- It keeps its place, or goes to the place of its ticket, or to the end.
--- Needs queue, fence.
--- @include clock.lua

-- Never a whole second, which is a Simba ticket
local function ticketAt(at)
  return string.format('%.6f', (at % 1000000 == 0 and at + 1 or at) / 1000000)
end

local function enter(id, ticket)
  local isOld = ticket and ticket * 1000000 < micros() + 1
  local text = ticketAt(isOld and math.floor(ticket * 1000000 + 0.5) or micros())
  if redis.call('ZADD', queue, 'NX', text, id) == 0 then
    return string.format('%.6f', redis.call('ZSCORE', queue, id))
  end
  if not isOld and redis.call('ZRANK', queue, id) < redis.call('ZCARD', queue) - 1 then
    -- The clock is behind, or another one queued in this microsecond
    local last = redis.call('ZRANGE', queue, '-1', '-1', 'WITHSCORES')[2]
    text = ticketAt(math.floor(last * 1000000 + 0.5) + 1)
    redis.call('ZADD', queue, text, id)
  end
  return text
end

-- Every waiter touches the queue before it sleeps, so the queue must outlive the sleep
local function keepQueue(ownerMillis, lease, confirm)
  local keep = math.max(ownerMillis, 0) + lease + confirm
  if redis.call('PTTL', queue) < keep then
    redis.call('PEXPIRE', queue, string.format('%.0f', keep))
  end
end

-- The time, and the token of the last grant: a later grant has a larger token, even if the clock steps
local function stampNow()
  return string.format('%.0f', micros()), string.match(redis.call('GET', fence) or '', '^%d+') or '0'
end
