--- Moves data streams' checkpoints forward if the caller owns the stream leases.
---
--- Refuses a commit beyond the last message. So a checkpoint beyond it means that the data stream was deleted and
--- written again: a failover that loses the last messages also loses the later commits.
---
--- KEYS[1] failures
--- KEYS[3n-1] streamLease
--- KEYS[3n] checkpoint
--- KEYS[3n+1] stream
--- ARGV[1] retention: ms  how long a checkpoint is kept
--- ARGV[5n-3] leaseValue  the stream lease's value
--- ARGV[5n-2] entry
--- ARGV[5n-1] id  the message's id
--- ARGV[5n] last: '1' | ''  whether the data stream ends there
--- ARGV[5n+1] offset: number | ''  number of messages added, up to and including this one
--- Reply: each 'Committed' | 'Behind' | 'Beyond' | 'NotOwner'.

local failures, retention = KEYS[1], ARGV[1]

--- @include include/checkpoint.lua
--- @include include/forEach.lua
--- @include include/idProblem.lua
--- @include include/infoField.lua

-- Returns whether an id is beyond the last message. Returns false if the data stream was deleted
local function isBeyondEnd(stream, id)
  if #redis.pcall('XRANGE', stream, id, id) > 0 then
    return false
  end
  local info = redis.pcall('XINFO', 'STREAM', stream)
  return not info.err and compareIds(id, field(info, 'last-generated-id')) > 0
end

return forEach(1, 3, 1, function(streamLease, checkpoint, stream, leaseValue, entry, id, last, offset)
  if redis.call('GET', streamLease) ~= leaseValue then
    return 'NotOwner'
  end
  if idProblem(id) then
    error(idProblem(id), 0)
  end
  local isLast = last == '1'
  local before, endedBy = checkpointOf(checkpoint)
  local order = before and compareIds(id, before) or 1
  if order < 0 or order == 0 and (not isLast or endedBy == entry) then
    return 'Behind'
  end
  if isBeyondEnd(stream, id) then
    return 'Beyond'
  end
  writeCheckpoint(checkpoint, id, isLast and entry or '', offset, retention)
  redis.call('HDEL', failures, entry)
  return 'Committed'
end)
