--- Reads pending entries. Removes those that are deleted.
---
--- KEYS[1] input
--- KEYS[2] failures
--- KEYS[3] announced
--- ARGV[1] group
--- ARGV[n+1] entry
--- Reply: { id, fields } for each that is there.

local input, failures, announced, group = KEYS[1], KEYS[2], KEYS[3], ARGV[1]

--- @include include/removeEntry.lua

local found = {}
for i = 2, #ARGV do
  local entry = redis.call('XRANGE', input, ARGV[i], ARGV[i])[1]
  if entry then
    found[#found + 1] = entry
  else
    remove('', ARGV[i])
  end
end
return found
