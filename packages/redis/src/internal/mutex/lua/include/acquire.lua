--- Decides an acquire: grants the mutex, hands it to the waiter whose turn it is, or refuses and queues the caller.
---
--- Needs owner, queue, fence, reserved, skipDead.
--- @include fence.lua
--- @include grant.lua
--- @include handOver.lua
--- @include ownership.lua
--- @include queue.lua
--- @include stockSimba.lua

-- How many of ours are known to be ahead, and whether stock contenders take part
local function positionOf(id, current)
  local foreign = current and not inboxOf(current)
  local ahead, found = 0, false
  local head = redis.call('ZRANGE', queue, 0, 15, 'WITHSCORES')
  for i = 1, #head, 2 do
    if head[i] == id then
      found = true
    elseif not isOurTicket(tonumber(head[i + 1])) then
      foreign = true
    elseif not found then
      ahead = ahead + 1
    end
  end
  if not found then
    ahead = redis.call('ZRANK', queue, id) or ahead
  end
  return string.format('%.0f', ahead), foreign and '1' or '0'
end

-- Somebody owns it, or somebody waits for it
local function contend(current, id, mode, lease, confirm, ticket, spare)
  local heldBack = false
  if not current then
    local score = redis.call('ZSCORE', queue, id)
    local awaited = redis.call('GET', reserved)
    -- A ticket without a place: a stock release took this waiter out of the queue, so it is its turn
    if awaited and (score or not ticket) then
      heldBack = true
    elseif not awaited then
      handOver(id, confirm, id, tonumber(score or '') or ticket)
      current = redis.call('GET', owner)
      heldBack = not current and redis.call('EXISTS', reserved) > 0
    end
  elseif redis.call('GET', reserved) == current then
    -- The stock waiter that was told to come has come
    redis.call('DEL', reserved)
  end
  if not current and not heldBack then
    return grant(id, lease, spare)
  end
  if mode == 'try' then
    return { ownership(), '', '0', '0' }
  end
  local mine = enter(id, ticket)
  keepQueue(lease, confirm)
  local position, foreign = positionOf(id, current)
  return { ownership(), mine, position, heldBack and '1' or foreign }
end

local function acquire(id, mode, lease, confirm, ticket, unfair, spare)
  if redis.call('EXISTS', queue, reserved) == 0 then
    -- Read before anything is written, so that a fence of the wrong type leaves no owner that does not know
    local last = redis.call('GET', fence)
    if redis.call('SET', owner, id, 'PX', lease, 'NX') then
      redis.call('PUBLISH', owner, 'acquired@@' .. id)
      return mint(spare, last)
    end
  end
  local current = redis.call('GET', owner)
  if current == id or (unfair and not current) then
    return grant(id, lease, spare, current)
  end
  return contend(current, id, mode, lease, confirm, ticket, spare)
end
