--- Hands data streams over to other members.
---
--- Transition: owned -> owned
---
--- The receiver gets a new epoch, which consists of its session, the token and the entry. Only these epochs contain a
--- hyphen; epochs that clients count themselves do not.
---
--- KEYS[1] input
--- KEYS[2] failures
--- KEYS[3] announced
--- KEYS[4] deadLetters
--- KEYS[5] handOvers  possibly unconfirmed
--- KEYS[5n+1] entryLease
--- KEYS[5n+2] streamLease
--- KEYS[5n+3] checkpoint
--- KEYS[5n+4] fence
--- KEYS[5n+5] stream
--- ARGV[1] group
--- ARGV[2] signals  the signal channel
--- ARGV[7n-4] entry
--- ARGV[7n-3] consumer
--- ARGV[7n-2] value  the entry lease's value: consumer@@epoch
--- ARGV[7n-1] token: number
--- ARGV[7n] receiver  the receiving consumer's name
--- ARGV[7n+1] session  the receiver's session
--- ARGV[7n+2] confirm: ms  how long the receiver has to confirm
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
