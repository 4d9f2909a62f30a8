--- Yields unfinished data streams. Any consumer may then take them immediately.
---
--- Transition: owned -> announced
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
--- ARGV[4n-1] entry
--- ARGV[4n] consumer
--- ARGV[4n+1] value  the entry lease's value: consumer@@epoch
--- ARGV[4n+2] token: number
--- Reply: each 'Released' | 'NotOwner'.

--- @include include/ownerCheck.lua
--- @include include/entryStates.lua
--- @include include/claimEntry.lua
--- @include include/markYielded.lua

return forEachOwned(function(lease)
  local entry = lease.entry
  -- Set the idle time to 60 s. No consumer, not even a Go consumer, requires a longer idle time to claim an entry
  claimEntry(input, group, entry, lease.consumer, '60000')
  markYielded(failures, entry, lease.value)
  yieldEntry(lease.entryLease, lease.streamLease)
  redis.call('PUBLISH', signals, 'released@@' .. entry .. '@@' .. lease.stream)
  return 'Released'
end)
