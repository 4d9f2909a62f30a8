--- Moves the checkpoints of data streams forward.
---
--- KEYS[1] failures
--- KEYS[2n] streamLease
--- KEYS[2n+1] checkpoint
--- ARGV[4n-3] held  value of the stream lease
--- ARGV[4n-2] entry
--- ARGV[4n-1] id    of the message
--- ARGV[4n] last    '1' if it is the last one: the data stream ends there
--- Reply: for each 'Committed', 'Behind', 'NotOwner' or { 'error', message }.

local failures = KEYS[1]
local streamLease, checkpoint, held, entry, id

--- @include include/forEach.lua
--- @include include/moveCheckpoint.lua

return forEach(1, 2, 0, function(...)
  local last
  streamLease, checkpoint, held, entry, id, last = ...
  return moveCheckpoint(last == '1')
end)
