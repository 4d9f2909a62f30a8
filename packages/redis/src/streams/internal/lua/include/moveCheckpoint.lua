--- Moves the checkpoint of a data stream forward, if the caller owns the stream lease.
--- Needs streamLease, checkpoint, failures, held, entry, id.
--- @include checkpoint.lua
--- @include idProblem.lua
--- @include retention.lua

local function moveCheckpoint(isLast)
  if redis.call('GET', streamLease) ~= held then
    return 'NotOwner'
  end
  if idProblem(id) then
    error(idProblem(id), 0)
  end
  local last, endedBy = checkpointOf()
  local order = last and compareIds(id, last) or 1
  if order < 0 or order == 0 and (not isLast or endedBy == entry) then
    return 'Behind'
  end
  redis.call('SET', checkpoint, isLast and id .. '@@' .. entry or id, 'PX', keepMillis)
  redis.call('HDEL', failures, entry)
  return 'Committed'
end
