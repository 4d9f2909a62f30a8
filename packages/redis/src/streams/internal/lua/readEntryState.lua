--- Reads the state of an entry.
---
--- KEYS[1] input
--- ARGV[1] group
--- ARGV[2] entry
--- Reply: 'gone', 'pending', 'new' or 'finished'.

local input, group, entry = KEYS[1], ARGV[1], ARGV[2]

--- @include include/entryState.lua

return stateOf(entry)
