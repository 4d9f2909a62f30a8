--- Moves a data stream's checkpoint to any message, forward or back, for its owner or for an operator.
---
--- Transition: owned -> announced
---
--- If an operator forces the move, the owner's lease ends, and the owner's later requests are refused. The data
--- stream's recorded end is removed. But if the owner seeks, an end under an earlier announcement remains, because
--- there is nothing to do until more messages arrive.
---
--- The caller passes the lease and the checkpoint that it found. If they have changed since, the request fails: a late
--- copy of a repeated request must not undo later commits. The checkpoint is not compared if the script ends an owner's
--- lease.
---
--- KEYS[1] streamLease
--- KEYS[2] checkpoint
--- ARGV[1] leaseValue  the stream lease's value, or '' if there is none
--- ARGV[2] entry  the owner's entry, or '' for an operator
--- ARGV[3] force: '1' | ''  whether to end an owner's lease
--- ARGV[4] from  the checkpoint's id, or '' if there is none
--- ARGV[5] id  the message's id
--- ARGV[6] offset: number | ''  number of messages added, up to and including this one
--- ARGV[7] retention: ms  how long a checkpoint is kept
--- Reply: 'Moved' | 'Changed' | 'NotOwner' | 'Owned'. 'Changed' if the lease or the checkpoint differs. 'Owned' if
---   there is an owner and the operator does not force the move.

local streamLease, checkpoint = KEYS[1], KEYS[2]
local leaseValue, entry, force, from = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local id, offset, retention = ARGV[5], ARGV[6], ARGV[7]

--- @include include/entryStates.lua
--- @include include/checkpoint.lua
--- @include include/idProblem.lua

-- Compare only ASCII characters. A lease from another program may contain bytes that the caller cannot decode, and the
-- caller would repeat its request forever
local function ascii(text)
  return (string.gsub(text, '[\128-\255]+', '?'))
end

local owner, isOperator = redis.call('GET', streamLease) or '', entry == ''
if idProblem(id) then
  return { err = idProblem(id) }
elseif isOperator and owner ~= '' and force ~= '1' then
  return 'Owned'
elseif ascii(owner) ~= ascii(leaseValue) then
  return isOperator and 'Changed' or 'NotOwner'
end
-- Ignore another program's checkpoint if it is not an id. Otherwise, the caller would repeat its request forever
local isSame = (string.match(redis.call('GET', checkpoint) or '', '^%d+%-%d+') or '') == from
if isOperator and owner ~= '' then
  disownEntry(streamLease)
elseif not isSame then
  return 'Changed'
end
local _, endedBy = checkpointOf(checkpoint)
writeCheckpoint(checkpoint, id, not isOperator and endedBy and endedBy ~= entry and endedBy or '', offset, retention)
return 'Moved'
