--- Moves the checkpoint of a data stream forward, if the caller owns the stream lease.
--- Needs streamLease, checkpoint, failures, held, entry, id.
--- @include checkpoint.lua
--- @include compareIds.lua
--- @include retention.lua

-- Whether it would move
local function orderOf(isLast)
  if redis.call('GET', streamLease) ~= held then
    return 'NotOwner'
  end
  local last, endedBy = checkpointOf()
  local order = last and compareIds(id, last) or 1
  if order < 0 or order == 0 and (not isLast or endedBy == entry) then
    return 'Behind'
  end
  return 'Committed'
end

local function moveCheckpoint(isLast)
  local order = orderOf(isLast)
  if order ~= 'Committed' then
    return order
  end
  redis.call('SET', checkpoint, isLast and id .. '@@' .. entry or id, 'PX', keepMillis)
  redis.call('HDEL', failures, entry)
  return 'Committed'
end
