--- Goes through the leases of a call: the caller owns a data stream if both leases are its own.
---
--- It names the slots with which scripts of many held leases begin.

local input, failures, announced, group = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local entryLease, streamLease, checkpoint, stream, entry, consumer, value, token

local function owns()
  return redis.call('GET', entryLease) == value and redis.call('GET', streamLease) == value .. '@@' .. token
end

-- `first` is the first argument of the first lease. A failure of one does not affect the others
local function forEach(first, act)
  local replies = {}
  for i = 1, (#KEYS - 3) / 3 do
    local key, arg = 3 * i, first + 5 * i - 6
    entryLease, streamLease, checkpoint = KEYS[key + 1], KEYS[key + 2], KEYS[key + 3]
    stream, entry, consumer = ARGV[arg + 1], ARGV[arg + 2], ARGV[arg + 3]
    value, token = ARGV[arg + 4], ARGV[arg + 5]
    local done, reply = pcall(act)
    replies[i] = done and reply or { 'error', type(reply) == 'table' and reply.err or tostring(reply) }
  end
  return replies
end
