--- Dead-letters a malformed entry.
---
--- Transition: announced -> dead
---
--- KEYS[1] input
--- KEYS[2] failures
--- KEYS[3] deadLetters
--- ARGV[1] group
--- ARGV[2] entry
--- ARGV[3] consumer
--- ARGV[4] reason
--- Reply: Flag. '0' if the entry is not pending for that consumer, or no longer exists.

local input, failures, deadLetters = KEYS[1], KEYS[2], KEYS[3]
local group, entry, consumer, reason = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

--- @include include/entryStates.lua

local pending = redis.call('XPENDING', input, group, entry, entry, 1)[1]
if not pending or pending[2] ~= consumer then
  return '0'
end
local found = redis.call('XRANGE', input, entry, entry)[1]
buryEntry(input, group, failures, deadLetters, entry, found and found[2], reason, '')
return found and '1' or '0'
