--- Begins the work under a hand-over, if the lease is still the receiver's.
---
--- From now on a handler runs under it, so a lease that runs out is a failure.
---
--- KEYS[1] input
--- KEYS[2] failures
--- KEYS[3] announced
--- KEYS[4] entryLease
--- KEYS[5] streamLease
--- KEYS[6] checkpoint
--- ARGV[1] group
--- ARGV[2] stream
--- ARGV[3] entry
--- ARGV[4] consumer
--- ARGV[5] value  of the entry lease: consumer@@epoch
--- ARGV[6] token
--- Reply: the entry with its fields, or nothing.

--- @include include/heldLease.lua
--- @include include/retention.lua

local checkpoint = KEYS[6]

if not owns() then
  return {}
end
redis.call('HSET', failures, entry .. ':by', value)
redis.call('PEXPIRE', failures, keepMillis)
redis.call('PEXPIRE', checkpoint, keepMillis)
return redis.call('XRANGE', input, entry, entry)
