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
--- ARGV[8] period   ms without a failure that end a row of failures
--- ARGV[9] progress '1' if the handler made progress since the last failure
--- Reply: { failures in a row, ms since the first }, or 'NotOwner'.

--- @include include/heldLease.lua
--- @include include/failures.lua
--- @include include/retention.lua

local attempt, period, progress = ARGV[7], ARGV[8], ARGV[9]

if not owns() then
  return 'NotOwner'
end
local number, prefix = tonumber(attempt), value .. '#'
if number then
  local last = redis.call('HGET', failures, entry .. ':last')
  if last and string.sub(last, 1, #prefix) == prefix and number <= tonumber(string.sub(last, #prefix + 1)) then
    return { failuresOf(entry, period) }
  end
end
local count, age = 0, 0
if progress ~= '1' then
  count, age = failuresOf(entry, period)
end
setFailures(entry, count + 1, age)
if number then
  redis.call('HSET', failures, entry .. ':last', prefix .. attempt)
end
redis.call('PEXPIRE', failures, keepMillis)
return { count + 1, age }
