--- Processes only leases that still have the caller's value and token. The reply for other leases is `NotOwner`.
---
--- Defines the KEYS and ARGV that all scripts for owned data streams share.
--- @include forEach.lua

local input, failures, announced, deadLetters, handOvers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local group, signals = ARGV[1], ARGV[2]

-- `act` receives a lease, then the item's remaining arguments. `otherwise` may return a reply other than `NotOwner`
local function forEachOwned(act, otherwise)
  return forEach(5, 5, 2, function(
    entryLease, streamLease, checkpoint, fence, stream, entry, consumer, value, token, ...)
    if redis.call('GET', entryLease) ~= value or redis.call('GET', streamLease) ~= value .. '@@' .. token then
      return otherwise and otherwise(entry) or 'NotOwner'
    end
    return act({
      entryLease = entryLease,
      streamLease = streamLease,
      checkpoint = checkpoint,
      fence = fence,
      stream = stream,
      entry = entry,
      consumer = consumer,
      value = value,
      token = token
    }, ...)
  end)
end
