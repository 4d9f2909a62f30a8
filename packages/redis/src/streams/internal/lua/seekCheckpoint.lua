--- Moves the checkpoint of a data stream to any message, forward or back: by its owner, or by an operator.
---
--- Transition: owned -> announced
---
--- An operator who forces it ends the lease of the owner, whose later requests are refused. The end of the stream is
--- forgotten. If the owner seeks, an end under an earlier announcement stays: without further messages there is nothing
--- to do.
---
--- The caller names what it changes: the lease, and the checkpoint unless the lease of another is ended. So a late
--- request of a broken connection changes nothing after the request was repeated and messages were committed since.
---
--- KEYS[1] streamLease
--- KEYS[2] checkpoint
--- ARGV[1] leaseValue  value of the stream lease, or '' where there is none
--- ARGV[2] entry  of the owner, or '' of an operator
--- ARGV[3] force: '1' | ''  whether to end the lease of an owner
--- ARGV[4] from  id of the checkpoint, or '' where there is none
--- ARGV[5] id  of the message
--- ARGV[6] offset: number | ''  how many messages were added up to it
--- ARGV[7] retention: ms  for which a checkpoint is kept
--- Reply: 'Moved' | 'Changed' | 'NotOwner' | 'Owned'. 'Changed' where the lease or the checkpoint is another one.
---   'Owned' where an operator does not force it.

local streamLease, checkpoint = KEYS[1], KEYS[2]
local leaseValue, entry, force, from = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local id, offset, retention = ARGV[5], ARGV[6], ARGV[7]

--- @include include/entryStates.lua
--- @include include/checkpoint.lua
--- @include include/idProblem.lua

local owner, isOperator = redis.call('GET', streamLease) or '', entry == ''
if idProblem(id) then
  return { err = idProblem(id) }
elseif isOperator and owner ~= '' and force ~= '1' then
  return 'Owned'
elseif owner ~= leaseValue then
  return isOperator and 'Changed' or 'NotOwner'
end
-- A text of another program that is no id counts as none: the caller would repeat its request forever
local isSame = (string.match(redis.call('GET', checkpoint) or '', '^%d+%-%d+') or '') == from
if isOperator and owner ~= '' then
  disownEntry(streamLease)
elseif not isSame then
  return 'Changed'
end
local _, endedBy = checkpointOf(checkpoint)
writeCheckpoint(checkpoint, id, not isOperator and endedBy and endedBy ~= entry and endedBy or '', offset, retention)
return 'Moved'
