--- Gives a data stream back unfinished: anybody may take it at once.
---
--- Its entry is 60 s old then, longer than any consumer waits before it claims, stock ones included.
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

--- @include include/owner.lua
--- @include include/yielded.lua

if not owns() then
  return 'NotOwner'
end
claimFor(consumer, '60000')
gaveUp()
redis.call('DEL', streamLease)
-- Expires with its event, which a deletion or an expiry of 0 has not
redis.call('PEXPIRE', entryLease, 1)
redis.call('PUBLISH', ARGV[7], 'released@@' .. entry .. '@@' .. stream)
return 'Released'
