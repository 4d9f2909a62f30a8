--- Gives a data stream back unfinished: anybody may take it at once.
---
--- KEYS[1] lbs
--- KEYS[2] failures
--- KEYS[3] announced
--- KEYS[4] entryLease
--- KEYS[5] streamLease
--- ARGV[1] group
--- ARGV[2] stream
--- ARGV[3] entry
--- ARGV[4] consumer
--- ARGV[5] value        of the entry lease: consumer@@epoch
--- ARGV[6] token
--- ARGV[7] signals      channel of signals
--- Reply: 'Released' or 'NotOwner'.

--- @include include/heldLease.lua
--- @include include/markYielded.lua

local signals = ARGV[7]

if not owns() then
  return 'NotOwner'
end
-- 60 s old: longer than any consumer waits before it claims, stock ones included
claimFor(consumer, '60000')
markYielded()
redis.call('DEL', streamLease)
-- Expires with its event, which a deletion or an expiry of 0 has not
redis.call('PEXPIRE', entryLease, 1)
redis.call('PUBLISH', signals, 'released@@' .. entry .. '@@' .. stream)
return 'Released'
