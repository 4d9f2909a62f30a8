--- Puts a waiter into the queue, and keeps the queue from expiring while it waits.
---
--- A waiter that is already queued keeps its place. One with an earlier ticket goes back to that place; any other goes
--- to the end.
--- @include clock.lua

-- Tickets are microseconds here, and seconds in the queue
local function ticketOf(score)
  return math.floor(score * 1000000 + 0.5)
end

-- A ticket of effect-simba is never a whole second: those belong to Simba contenders
local function put(queue, id, at, mode)
  local ticket = at % 1000000 == 0 and at + 1 or at
  return ticket, redis.call('ZADD', queue, mode, string.format('%.6f', ticket / 1000000), id)
end

-- Returns the ticket, and how many waiters are ahead
local function enter(queue, id, former)
  local old = former and ticketOf(former)
  local isOld = old and old <= micros()
  local ticket, added = put(queue, id, isOld and old or micros(), 'NX')
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

-- Every waiter touches the queue before it sleeps, so the queue must outlive the sleep. With one more confirm period,
-- most waiters need no extension
local function keepQueue(queue, ownerMillis, lease, confirm)
  local keep = math.max(ownerMillis, 0) + lease + confirm
  if redis.call('PTTL', queue) < keep then
    redis.call('PEXPIRE', queue, string.format('%.0f', keep + confirm))
  end
end

-- The ages of the ticket and of the last grant, in microseconds. The last token gives the time of that grant, and grows
-- even if the clock steps back
local function ages(fence, ticket)
  return micros() - ticket, micros() - (tonumber(redis.call('GET', fence) or '') or 0)
end
