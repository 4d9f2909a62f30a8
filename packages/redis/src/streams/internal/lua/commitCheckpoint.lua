--- Moves the checkpoint of a data stream forward.
---
--- KEYS[1] streamLease
--- KEYS[2] checkpoint
--- KEYS[3] failures
--- ARGV[1] held   value of the stream lease
--- ARGV[2] entry
--- ARGV[3] id     of the message
--- Reply: 'Committed', 'Behind' or 'NotOwner'.

--- @include include/checkpoint.lua

return move()
