--- Refuses stale owners: processes the leases of a call that still carry the value and the token of the caller.
---
--- It defines the slots that all scripts of owned data streams share.
--- @include forEach.lua

local input, failures, announced, deadLetters, handOvers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local group, signals = ARGV[1], ARGV[2]

-- `act` receives one lease, and its arguments after the token
local function forEachOwned(act, otherwise)
  return forEach(5, 4, 2, function(
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
