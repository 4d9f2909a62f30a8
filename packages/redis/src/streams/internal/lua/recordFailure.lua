--- Counts the failure of a handler, once for each attempt.
---
--- The last attempt again counts nothing, nor does one before it: an answer was lost, and a request that was sent first
--- may arrive after all that were sent since.
---
--- KEYS[1] input
--- KEYS[2] failures
--- KEYS[3] announced
--- KEYS[4] entryLease
--- KEYS[5] streamLease
--- ARGV[1] group
--- ARGV[2] stream
--- ARGV[3] entry
--- ARGV[4] consumer
--- ARGV[5] value    of the entry lease: consumer@@epoch
--- ARGV[6] token
--- ARGV[7] attempt  its number, or '' to count always
--- Reply: the failures so far, or 'NotOwner'.

--- @include include/heldLease.lua
--- @include include/retention.lua

local attempt = ARGV[7]

if not owns() then
  return 'NotOwner'
end
local number, prefix = tonumber(attempt), value .. '#'
if number then
  local last = redis.call('HGET', failures, entry .. ':last')
  if last and string.sub(last, 1, #prefix) == prefix and number <= tonumber(string.sub(last, #prefix + 1)) then
    return redis.call('HGET', failures, entry) or '0'
  end
end
local count = redis.call('HINCRBY', failures, entry, 1)
if number then
  redis.call('HSET', failures, entry .. ':last', prefix .. attempt)
end
redis.call('PEXPIRE', failures, keepMillis)
return string.format('%.0f', count)
