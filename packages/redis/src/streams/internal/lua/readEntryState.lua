--- Reads whether an entry is unfinished.
---
--- KEYS[1] input
--- ARGV[1] group
--- ARGV[2] entry
--- Reply: Flag.

local input, group, entry = KEYS[1], ARGV[1], ARGV[2]

--- @include include/entryState.lua

return isUnfinished(input, group, entry) and '1' or '0'
