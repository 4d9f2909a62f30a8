--- Reads a mutex's owner and its remaining time in one step. Used for `MutexStore.owner` and before a forced release.
---
--- KEYS[1] owner
--- Reply: OwnershipText.

local owner = KEYS[1]

--- @include include/ownership.lua

return ownershipOf(owner, redis.call('GET', owner))
