--- Hands data streams over to other members.
---
--- Transition: owned -> owned
---
--- The receiver gets a new epoch, which consists of its session, the token and the entry. Only such an epoch contains a
--- hyphen; the epochs that clients count themselves do not.
---
--- KEYS[1] input
--- KEYS[2] failures
--- KEYS[3] announced
--- KEYS[4] deadLetters
--- KEYS[5] handOvers  that may be unconfirmed
--- KEYS[5n+1] entryLease
--- KEYS[5n+2] streamLease
--- KEYS[5n+3] checkpoint
--- KEYS[5n+4] fence
--- KEYS[5n+5] stream
--- ARGV[1] group
--- ARGV[2] signals  the channel for signals
--- ARGV[7n-4] entry
--- ARGV[7n-3] consumer
--- ARGV[7n-2] value  of the entry lease: consumer@@epoch
--- ARGV[7n-1] token: number
--- ARGV[7n] receiver  name of the receiving consumer
--- ARGV[7n+1] session  of the receiver
--- ARGV[7n+2] confirm: ms  time within which the receiver must confirm
--- Reply: each 'HandedOver' | 'NotOwner'.

--- @include include/ownerCheck.lua
--- @include include/entryStates.lua
--- @include include/claimEntry.lua
--- @include include/markYielded.lua
--- @include include/fence.lua
--- @include include/clock.lua

local receivers = {}
local replies = forEachOwned(function(lease, receiver, session, confirm)
  local entry, fence = lease.entry, lease.fence
  local newToken = nextToken(redis.call('GET', fence))
  local epoch = session .. '.' .. newToken .. '-' .. entry
  local newValue = receiver .. '@@' .. epoch
  claimEntry(input, group, entry, receiver, '0')
  -- No handler runs under the lease until the receiver adopts it
  markYielded(failures, entry, lease.value)
  local handOver = table.concat({ session, epoch, newToken, entry, receiver, lease.stream }, '@@')
  redis.call('ZREMRANGEBYSCORE', handOvers, '-inf', string.format('%.0f', now - 1))
  redis.call('ZADD', handOvers, string.format('%.0f', now + tonumber(confirm)), handOver)
  if redis.call('PTTL', handOvers) < tonumber(confirm) then
    redis.call('PEXPIRE', handOvers, confirm)
  end
  -- Change the leases last, because one of the keys above may have the wrong type
  keepFence(fence, newToken)
  ownEntry(lease.entryLease, lease.streamLease, newValue, newToken, confirm)
  receivers[session] = true
  return 'HandedOver'
end)
for session in pairs(receivers) do
  redis.call('PUBLISH', signals, 'given@@' .. session)
end
return replies
