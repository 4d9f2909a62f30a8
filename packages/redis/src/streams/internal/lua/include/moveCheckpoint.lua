--- Moves the checkpoint of a data stream forward, if the caller owns the stream lease.
--- Needs streamLease, checkpoint, failures, held, entry, id, offset, retention.
--- @include checkpoint.lua
--- @include idProblem.lua

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
  writeCheckpoint(id, isLast and entry or '', offset, retention)
  redis.call('HDEL', failures, entry)
  return 'Committed'
end
