--- Goes through the leases of a call: the caller owns a data stream if both leases are its own.
---
--- It names the slots that all scripts of held leases share.
--- @include forEach.lua

local input, failures, announced, deadLetters, handOvers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local group, signals = ARGV[1], ARGV[2]
local entryLease, streamLease, checkpoint, fence, stream, entry, consumer, value, token

-- `act` receives the arguments of one lease after its token
local function forEachOwned(act, otherwise)
  return forEach(5, 4, 2, function(...)
    entryLease, streamLease, checkpoint, fence, stream, entry, consumer, value, token = ...
    if redis.call('GET', entryLease) == value and redis.call('GET', streamLease) == value .. '@@' .. token then
      return act(unpack({ ... }, 10))
    end
    return otherwise and otherwise() or 'NotOwner'
  end)
end
