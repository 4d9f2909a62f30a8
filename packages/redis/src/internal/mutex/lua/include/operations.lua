--- Acquire and release in full: every case of them.

local function grant(id, lease, spare, isOwner)
  local token = take(id, lease, spare, isOwner)
  redis.call('ZREM', queue, id)
  redis.call('DEL', reserved)
  return token
end

local function place(id, current)
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
  local position, foreign = place(id, current)
  return { ownership(), mine, position, heldBack and '1' or foreign }
end

-- It has been deleted if it was the caller's
local function handBack(current, id, confirm, unfair, nextId, lease, spare)
  local rank = redis.call('ZRANK', queue, id)
  if rank then
    redis.call('ZREM', queue, id)
  end
  local ticket, token = '', ''
  if nextId ~= '' then
    ticket = enter(nextId)
  end
  local isFree = false
  if current == id then
    isFree = not handOver(id, confirm, nextId, nil, unfair)
  elseif nextId ~= '' and not current and redis.call('EXISTS', reserved) == 0 then
    isFree = not handOver(id, confirm, nextId)
  elseif rank == 0 then
    tellFirst(math.max(redis.call('PTTL', owner), 0))
  end
  if nextId == '' then
    return ownership()
  end
  if isFree or current == nextId then
    token = take(nextId, lease, spare, not isFree)
    redis.call('ZREM', queue, nextId)
  else
    keepQueue(lease, confirm)
  end
  return { ownership(), ticket, token }
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

local function release(id, confirm, unfair, nextId, lease, spare)
  local current = redis.call('GET', owner)
  if current == id then
    redis.call('DEL', owner)
    if redis.call('EXISTS', queue) == 0 then
      if nextId == '' then
        return '@@'
      end
      return { nextId .. '@@' .. lease, ticketAt(micros()), take(nextId, lease, spare) }
    end
  end
  return handBack(current, id, confirm, unfair, nextId, lease, spare)
end
