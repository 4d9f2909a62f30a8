--- Queues a waiter, and keeps the queue from expiring while the waiter is in it.
---
--- A waiter that is already queued keeps its place. A waiter that returns with an earlier ticket regains that ticket's
--- place. Any other waiter goes to the end.
--- @include clock.lua

-- Converts a queue score in seconds to a ticket in microseconds
local function ticketOf(score)
  return math.floor(score * 1000000 + 0.5)
end

-- An effect-simba ticket is never a whole second, because whole seconds belong to Simba contenders
local function put(queue, id, at, mode)
  local ticket = at % 1000000 == 0 and at + 1 or at
  return ticket, redis.call('ZADD', queue, mode, string.format('%.6f', ticket / 1000000), id)
end

-- Queues a waiter. Returns its ticket and the number of waiters ahead of it
local function enter(queue, id, former)
  local old = former and ticketOf(former)
  local isOld = old and old <= now
  local ticket, added = put(queue, id, isOld and old or now, 'NX')
  local ahead = redis.call('ZRANK', queue, id)
  if added == 0 then
    return ticketOf(redis.call('ZSCORE', queue, id)), ahead
  end
  local others = not isOld and redis.call('ZCARD', queue) - 1
  if others and ahead < others then
    -- The clock stepped back, or another waiter queued in the same microsecond
    local last = redis.call('ZRANGE', queue, '-1', '-1', 'WITHSCORES')[2]
    return put(queue, id, ticketOf(last) + 1, 'XX'), others
  end
  return ticket, ahead
end

-- Called for every waiter before it sleeps, so the queue only has to outlive that sleep. The extra confirm period
-- avoids most further extensions
local function keepQueue(queue, ownerMillis, lease, confirm)
  local keep = math.max(ownerMillis, 0) + lease + confirm
  if redis.call('PTTL', queue) < keep then
    redis.call('PEXPIRE', queue, string.format('%.0f', keep + confirm))
  end
end

-- Returns the ages of the ticket and the last grant in microseconds. Tokens are timestamps that never decrease, even if
-- the clock steps back, so the last token doubles as the time of the last grant
local function ages(fence, ticket)
  return now - ticket, now - (tonumber(redis.call('GET', fence) or '') or 0)
end
