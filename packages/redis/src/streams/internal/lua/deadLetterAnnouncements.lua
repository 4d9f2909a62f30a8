--- Moves entries to the dead letters, and deletes both leases of each entry.
---
--- Transition: owned -> dead
---
--- The checkpoint is kept as long as the dead letter.
---
--- KEYS[1] input
--- KEYS[2] failures
--- KEYS[3] announced
--- KEYS[4] deadLetters
--- KEYS[5] handOvers  that may be unconfirmed
--- KEYS[4n+2] entryLease
--- KEYS[4n+3] streamLease
--- KEYS[4n+4] checkpoint
--- KEYS[4n+5] fence
--- ARGV[1] group
--- ARGV[2] signals  the channel of signals
--- ARGV[6n-3] stream
--- ARGV[6n-2] entry
--- ARGV[6n-1] consumer
--- ARGV[6n] value  of the entry lease: consumer@@epoch
--- ARGV[6n+1] token: number
--- ARGV[6n+2] reason
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
