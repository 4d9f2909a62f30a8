--- Moves an entry to the dead letters, and deletes both leases.
---
--- The checkpoint lasts as long as this letter would alone.
---
--- KEYS[1] input
--- KEYS[2] failures
--- KEYS[3] announced
--- KEYS[4] entryLease
--- KEYS[5] streamLease
--- KEYS[6] deadLetters
--- KEYS[7] checkpoint
--- ARGV[1] group
--- ARGV[2] stream
--- ARGV[3] entry
--- ARGV[4] consumer
--- ARGV[5] value  of the entry lease: consumer@@epoch
--- ARGV[6] token
--- ARGV[7] reason
--- Reply: 'Buried' or 'NotOwner'.

--- @include include/heldLease.lua
--- @include include/removeEntry.lua
--- @include include/deadLetter.lua

local deadLetters, checkpoint, reason = KEYS[6], KEYS[7], ARGV[7]

if not owns() then
  return 'NotOwner'
end
local found = redis.call('XRANGE', input, entry, entry)[1]
if found then
  addDead(deadLetters, found[2], reason, entry, token)
  redis.call('PEXPIRE', checkpoint, deadMillis)
end
remove(stream, entry)
redis.call('DEL', entryLease, streamLease)
return 'Buried'
