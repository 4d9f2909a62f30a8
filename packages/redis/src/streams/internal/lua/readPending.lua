--- Reads pending entries, and acknowledges those that no longer exist.
---
--- KEYS[1] input
--- KEYS[2] failures
--- ARGV[1] group
--- ARGV[n+1] entry
--- Reply: Entries. The entries that exist.

local input, failures, group = KEYS[1], KEYS[2], ARGV[1]

--- @include include/entryStates.lua

local found = {}
for i = 2, #ARGV do
  local entry = redis.call('XRANGE', input, ARGV[i], ARGV[i])[1]
  if entry then
    found[#found + 1] = entry
  else
    deleteEntry(input, group, failures, ARGV[i])
  end
end
return found
