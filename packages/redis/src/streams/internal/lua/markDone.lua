--- Marks a data stream done: deletes its entry and both leases.
---
--- KEYS[1] input
--- KEYS[2] failures
--- KEYS[3] announced
--- KEYS[4] entryLease
--- KEYS[5] streamLease
--- ARGV[1] group
--- ARGV[2] stream
--- ARGV[3] entry
--- ARGV[4] consumer
--- ARGV[5] value  of the entry lease: consumer@@epoch
--- ARGV[6] token
--- Reply: 'Done', 'AlreadyDone' if there is no such entry any more, or 'NotOwner'.

--- @include include/heldLease.lua
--- @include include/removeEntry.lua

if owns() then
  local count = remove(stream, entry)
  redis.call('DEL', entryLease, streamLease)
  return count > 0 and 'Done' or 'AlreadyDone'
end
return #redis.call('XRANGE', input, entry, entry) == 0 and 'AlreadyDone' or 'NotOwner'
