--- Moves the checkpoint of a data stream forward, if the caller owns the stream lease.
---
--- It never passes the last message: a primary that lost the end of a data stream lost the commits there too. So a
--- checkpoint beyond the last message shows that the data stream was deleted and written again.
--- Needs streamLease, checkpoint, stream, failures, held, entry, id, offset, retention.
--- @include checkpoint.lua
--- @include idProblem.lua
--- @include infoField.lua

-- A data stream that was deleted may have any checkpoint
local function isBeyondEnd()
  if #redis.pcall('XRANGE', stream, id, id) > 0 then
    return false
  end
  local info = redis.pcall('XINFO', 'STREAM', stream)
  return not info.err and compareIds(id, field(info, 'last-generated-id')) > 0
end

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
  if isBeyondEnd() then
    return 'Beyond'
  end
  writeCheckpoint(id, isLast and entry or '', offset, retention)
  redis.call('HDEL', failures, entry)
  return 'Committed'
end
