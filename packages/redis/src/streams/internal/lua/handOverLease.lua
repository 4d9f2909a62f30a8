--- Hands a data stream over to another member.
---
--- The receiver gets a new epoch, made of the token. Epochs that a client counts itself never contain one.
---
--- KEYS[1] input
--- KEYS[2] failures
--- KEYS[3] announced
--- KEYS[4] entryLease
--- KEYS[5] streamLease
--- KEYS[6] fence
--- KEYS[7] given     hand-overs that may be unconfirmed
--- ARGV[1] group
--- ARGV[2] stream
--- ARGV[3] entry
--- ARGV[4] consumer
--- ARGV[5] value     of the entry lease: consumer@@epoch
--- ARGV[6] token
--- ARGV[7] signals   channel of signals
--- ARGV[8] receiver  its consumer
--- ARGV[9] session   of the receiver
--- ARGV[10] confirm  ms until the receiver must have confirmed
--- Reply: 'HandedOver' or 'NotOwner'.

--- @include include/heldLease.lua
--- @include include/claimEntry.lua
--- @include include/markYielded.lua
--- @include include/fence.lua

local fence, given = KEYS[6], KEYS[7]
local signals, receiver, session, confirm = ARGV[7], ARGV[8], ARGV[9], ARGV[10]

if not owns() then
  return 'NotOwner'
end
local newToken = nextToken(redis.call('GET', fence))
local epoch = session .. '.h' .. newToken .. 'x' .. string.gsub(entry, '-', 'x')
local newValue = receiver .. '@@' .. epoch
claimFor(receiver, '0')
keepFence(fence, newToken)
redis.call('SET', entryLease, newValue, 'PX', confirm)
redis.call('SET', streamLease, newValue .. '@@' .. newToken, 'PX', confirm)
-- Until the receiver asks for it, no handler runs under its lease
markYielded()
local handOver = table.concat({ session, epoch, newToken, entry, receiver, stream }, '@@')

--- @include include/clock.lua

redis.call('ZREMRANGEBYSCORE', given, '-inf', string.format('%.0f', now - 1))
redis.call('ZADD', given, string.format('%.0f', now + tonumber(confirm)), handOver)
if redis.call('PTTL', given) < tonumber(confirm) then
  redis.call('PEXPIRE', given, confirm)
end
redis.call('PUBLISH', signals, 'given@@' .. session)
return 'HandedOver'
