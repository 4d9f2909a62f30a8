--- Moves the checkpoint of a data stream forward.
---
--- KEYS[1] streamLease
--- KEYS[2] checkpoint
--- KEYS[3] failures
--- ARGV[1] held  value of the stream lease
--- ARGV[2] entry
--- ARGV[3] id    of the message
--- ARGV[4] last  '1' if it is the last one: the data stream ends there
--- Reply: 'Committed', 'Behind' or 'NotOwner'.

local streamLease, checkpoint, failures = KEYS[1], KEYS[2], KEYS[3]
local held, entry, id, last = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

--- @include include/moveCheckpoint.lua

return moveCheckpoint(last == '1')
