--- Decides whether the caller owns a data stream: both leases are its own. Gives its entry to a consumer.
---
--- It names the slots with which all scripts of a held lease begin.

local lbs, failures, announced, entryLease, streamLease = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local group, stream, entry, consumer, value, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

--- @include removeEntry.lua

local function owns()
  return redis.call('GET', entryLease) == value and redis.call('GET', streamLease) == value .. '@@' .. token
end

-- Without a group there is nothing pending, and the next group hands everything out again
local function claimFor(owner, idle)
  local reply = redis.pcall('XCLAIM', lbs, group, owner, '0', entry, 'IDLE', idle, 'JUSTID')
  if reply.err and not string.find(reply.err, 'NOGROUP', 1, true) then
    error(reply.err)
  end
end
