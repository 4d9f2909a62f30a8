--- Moves the checkpoints of data streams forward.
---
--- KEYS[1] failures
--- KEYS[3n-1] streamLease
--- KEYS[3n] checkpoint
--- KEYS[3n+1] stream
--- ARGV[1] retention: ms  for which a checkpoint is kept
--- ARGV[5n-3] held  value of the stream lease
--- ARGV[5n-2] entry
--- ARGV[5n-1] id  of the message
--- ARGV[5n] last: '1' | ''  whether it is the last one: the data stream ends there
--- ARGV[5n+1] offset: number | ''  how many messages were added up to it
--- Reply: each 'Committed' | 'Behind' | 'Beyond' | 'NotOwner'.

local failures, retention = KEYS[1], ARGV[1]
local streamLease, checkpoint, stream, held, entry, id, offset

--- @include include/forEach.lua
--- @include include/moveCheckpoint.lua

return forEach(1, 3, 1, function(...)
  local last
  streamLease, checkpoint, stream, held, entry, id, last, offset = ...
  return moveCheckpoint(last == '1')
end)
