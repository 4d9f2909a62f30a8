--- Counts handler failures, once per attempt.
---
--- A repeated request for the last attempt does not count, because its reply may have been lost. A late request for an
--- earlier attempt does not count either.
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
--- ARGV[7n] attempt: number | ''  the attempt's number; '' always counts
--- ARGV[7n+1] pause: ms  time without a failure after which the count restarts
--- ARGV[7n+2] progress: '1' | ''  whether the handler made progress since the last failure
--- Reply: each 'NotOwner' | { Natural, Natural }. The number of consecutive failures, and ms since the first.

--- @include include/ownerCheck.lua
--- @include include/failures.lua
--- @include include/retention.lua

return forEachOwned(function(lease, attempt, pause, progress)
  local entry, value = lease.entry, lease.value
  local number, prefix = tonumber(attempt), value .. '#'
  if number then
    local last = redis.call('HGET', failures, entry .. ':last')
    if last and string.sub(last, 1, #prefix) == prefix and number <= tonumber(string.sub(last, #prefix + 1)) then
      return { failuresOf(failures, entry, pause) }
    end
  end
  local count, age = 0, 0
  if progress ~= '1' then
    count, age = failuresOf(failures, entry, pause)
  end
  setFailures(failures, entry, count + 1, age)
  if number then
    redis.call('HSET', failures, entry .. ':last', prefix .. attempt)
  end
  redis.call('PEXPIRE', failures, keepMillis)
  return { count + 1, age }
end)
