--- Adopts data streams that were handed over to the caller, if it still owns their leases.
---
--- From then on, a handler runs under the lease, so it counts as a failure if the lease expires.
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
--- Reply: each 'NotOwner' | { failures: Count, Entries }. The number of consecutive failures, and the entry with its
---   fields.

--- @include include/ownerCheck.lua
--- @include include/keepCheckpoint.lua
--- @include include/retention.lua

return forEachOwned(function(lease)
  redis.call('HSET', failures, lease.entry .. ':busy', lease.value)
  redis.call('PEXPIRE', failures, keepMillis)
  keepCheckpoint(lease.checkpoint, keepMillis)
  local count = string.match(redis.call('HGET', failures, lease.entry) or '', '^%d+') or '0'
  return { count, redis.call('XRANGE', input, lease.entry, lease.entry) }
end)
