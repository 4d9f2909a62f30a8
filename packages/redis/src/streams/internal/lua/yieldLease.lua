--- Gives a data stream back unfinished: anybody may take it at once.
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
--- ARGV[7] signals  channel of signals
--- Reply: 'Released' or 'NotOwner'.

--- @include include/heldLease.lua
--- @include include/claimEntry.lua
--- @include include/markYielded.lua

local signals = ARGV[7]

if not owns() then
  return 'NotOwner'
end
-- 60 s old: longer than any consumer waits before it claims, stock ones included
claimFor(consumer, '60000')
markYielded()
redis.call('DEL', streamLease)
-- Runs out with an expired event. A deletion has none, nor an expiry of 0
redis.call('PEXPIRE', entryLease, 1)
redis.call('PUBLISH', signals, 'released@@' .. entry .. '@@' .. stream)
return 'Released'
