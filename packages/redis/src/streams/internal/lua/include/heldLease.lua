--- Decides whether the caller owns a data stream: both leases are its own.
---
--- It names the slots with which all scripts of a held lease begin.

local input, failures, announced, entryLease, streamLease = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local group, stream, entry, consumer, value, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

local function owns()
  return redis.call('GET', entryLease) == value and redis.call('GET', streamLease) == value .. '@@' .. token
end
