--- Puts a waiter into the queue, and keeps the queue from expiring while it waits.
---
--- It keeps its place, or goes to the place of its ticket, or to the end.
--- @include clock.lua

-- Tickets are microseconds here, and seconds in the queue
local function ticketOf(score)
  return math.floor(score * 1000000 + 0.5)
end

-- Never a whole second, which is a Simba ticket
local function put(queue, id, at, mode)
  local ticket = at % 1000000 == 0 and at + 1 or at
  return ticket, redis.call('ZADD', queue, mode, string.format('%.6f', ticket / 1000000), id)
end

-- Returns the ticket, and how many are ahead
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
    -- The clock is behind, or another one queued in this microsecond
    local last = redis.call('ZRANGE', queue, '-1', '-1', 'WITHSCORES')[2]
    return put(queue, id, ticketOf(last) + 1, 'XX'), others
  end
  return ticket, ahead
end

-- Every waiter touches the queue before it sleeps, so the queue must outlive the sleep. It is kept for one confirm
-- period more, so that not every waiter extends it
local function keepQueue(queue, ownerMillis, lease, confirm)
  local keep = math.max(ownerMillis, 0) + lease + confirm
  if redis.call('PTTL', queue) < keep then
    redis.call('PEXPIRE', queue, string.format('%.0f', keep + confirm))
  end
end

-- How old a ticket is, and the token of the last grant, in microseconds: a later grant has a larger token, even if the
-- clock steps
local function ages(fence, ticket)
  return micros() - ticket, micros() - (tonumber(redis.call('GET', fence) or '') or 0)
end
