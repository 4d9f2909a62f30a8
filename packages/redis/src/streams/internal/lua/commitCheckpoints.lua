--- Moves the checkpoints of data streams forward.
---
--- KEYS[1] failures
--- KEYS[2n] streamLease
--- KEYS[2n+1] checkpoint
--- ARGV[1] retention  ms for which a checkpoint is kept
--- ARGV[5n-3] held    value of the stream lease
--- ARGV[5n-2] entry
--- ARGV[5n-1] id      of the message
--- ARGV[5n] last    '1' if it is the last one: the data stream ends there
--- ARGV[5n+1] offset  how many messages were added up to it, or ''
--- Reply: for each 'Committed', 'Behind', 'NotOwner' or { 'error', message }.

local failures, retention = KEYS[1], ARGV[1]
local streamLease, checkpoint, held, entry, id, offset

--- @include include/forEach.lua
--- @include include/moveCheckpoint.lua

return forEach(1, 2, 1, function(...)
  local last
  streamLease, checkpoint, held, entry, id, last, offset = ...
  return moveCheckpoint(last == '1')
end)
