--- Decides an acquire: grants the mutex, hands it to the waiter whose turn it is, or refuses and queues the caller.
---
--- - Nobody owns it: the first live waiter ahead of the caller is granted the mutex, else the caller.
--- - The caller owns it: a full lease again, the same token.
--- - Otherwise the caller is refused, and in mode 'wait' queued under its ticket. If a Simba waiter is expected, one of
---   the first eight is notified when to poll, because the Simba waiter may not come.
---
--- Replies the token, or { ownership, ticket or '', position, '1' if Simba contenders take part }, in mode
--- 'wait' with { ..., time in microseconds, last token }: a grant message is judged by them.
--- Needs owner, queue, fence, reserved, skipDead.
--- @include grant.lua
--- @include handOver.lua
--- @include ownership.lua
--- @include queue.lua
--- @include contenderIds.lua

-- How many effect-simba contenders are known to be ahead, and whether Simba contenders take part
local function positionOf(id, current)
  local foreign = current and not layerOf(current)
  local ahead, found = 0, false
  -- Without scores, which are slow for the server to format
  for _, waiter in ipairs(redis.call('ZRANGE', queue, '0', '15')) do
    if waiter == id then
      found = true
    elseif not layerOf(waiter) then
      foreign = true
    elseif not found then
      ahead = ahead + 1
    end
  end
  if not found then
    ahead = redis.call('ZRANK', queue, id) or ahead
  end
  return tostring(ahead), foreign
end

local function acquire(id, current, mode, lease, confirm, ticket)
  if current == id then
    return grant(id, lease, current)
  end
  local holdsBack = false
  if not current then
    local score = redis.call('ZSCORE', queue, id)
    local awaited = redis.call('GET', reserved)
    -- A ticket without a place: a Simba release took this waiter out of the queue, so it is its turn
    if awaited then
      holdsBack = score or not ticket
    else
      local notified
      notified, current = handOver(id, confirm, lease, id, tonumber(score or '') or ticket)
      holdsBack = notified and not current
    end
    if not current and not holdsBack then
      return grant(id, lease)
    end
  elseif not layerOf(current) and redis.call('GET', reserved) == current then
    -- The Simba waiter whose turn it was owns the mutex
    redis.call('DEL', reserved)
  end
  if mode == 'try' then
    return { ownershipOf(current), '', '0', '0' }
  end
  local mine = enter(id, ticket)
  local left = redis.call('PTTL', owner)
  keepQueue(left, lease, confirm)
  local position, foreign = positionOf(id, current)
  local inbox = holdsBack and tonumber(position) < 8 and inboxOf(id)
  if inbox then
    notify(id, inbox, 'look@@' .. math.max(redis.call('PTTL', reserved), 0))
  end
  local time, last = stampNow()
  return { ownershipOf(current, left), mine, position, (holdsBack or foreign) and '1' or '0', time, last }
end
