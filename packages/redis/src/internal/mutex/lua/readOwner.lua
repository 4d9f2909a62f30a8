--- Reads the owner of a mutex and the remaining time in one step, for `MutexStore.owner` and before a forced release.
---
--- KEYS[1] owner
--- Reply: OwnershipText.

local owner = KEYS[1]

--- @include include/ownership.lua

return ownershipOf(owner, redis.call('GET', owner))
