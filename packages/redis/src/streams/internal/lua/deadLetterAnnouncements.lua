--- Dead-letters entries, and deletes both leases of each entry.
---
--- Transition: owned -> dead
---
--- Keeps each checkpoint as long as its dead letter.
---
--- KEYS[1] input
--- KEYS[2] failures
--- KEYS[3] announced
--- KEYS[4] deadLetters
--- KEYS[5] handOvers  possibly unconfirmed
--- KEYS[5n+1] entryLease
--- KEYS[5n+2] streamLease
--- KEYS[5n+3] checkpoint
--- KEYS[5n+4] fence
--- KEYS[5n+5] stream
--- ARGV[1] group
--- ARGV[2] signals  the signal channel
--- ARGV[5n-2] entry
--- ARGV[5n-1] consumer
--- ARGV[5n] value  the entry lease's value: consumer@@epoch
--- ARGV[5n+1] token: number
--- ARGV[5n+2] reason
--- Reply: each 'DeadLettered' | 'NotOwner'.

--- @include include/ownerCheck.lua
--- @include include/announcement.lua
--- @include include/keepCheckpoint.lua

return forEachOwned(function(lease, reason)
  local stream, entry = lease.stream, lease.entry
  local found = redis.call('XRANGE', input, entry, entry)[1]
  keepCheckpoint(lease.checkpoint, deadMillis)
  buryEntry(input, group, failures, deadLetters, entry, found and found[2], reason, lease.token)
  dropLeases(lease.entryLease, lease.streamLease)
  forgetAnnouncement(announced, stream, entry)
  return 'DeadLettered'
end)
