--- Reads the owner of a mutex.
---
--- KEYS[1] owner
--- Reply: OwnershipText.

local owner = KEYS[1]

--- @include include/ownership.lua

return ownershipOf(owner, redis.call('GET', owner))
