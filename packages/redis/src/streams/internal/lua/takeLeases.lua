--- Takes data streams whose entry is pending, has been idle for long enough, and is not leased.
---
--- Sets both leases, then claims the entry.
---
--- Transition: announced -> owned, announced -> dead
---
--- If the data stream was already taken with the same value, extends the leases and keeps the token. If a lease expired
--- while a handler was busy, that counts as a failure.
---
--- Each data stream has two leases. The entry lease is the only one that Go consumers know. Each announcement of a data
--- stream has its own entry lease. The stream lease excludes owners under other announcements, and contains the token.
---
--- KEYS[1] input
--- KEYS[2] failures
--- KEYS[3] announced
--- KEYS[4] deadLetters
--- KEYS[4n+1] entryLease
--- KEYS[4n+2] streamLease
--- KEYS[4n+3] checkpoint
--- KEYS[4n+4] fence
--- ARGV[1] group
--- ARGV[9n-7] stream
--- ARGV[9n-6] entry
--- ARGV[9n-5] value  the entry lease's value: consumer@@epoch
--- ARGV[9n-4] consumer
--- ARGV[9n-3] lease: ms
--- ARGV[9n-2] minIdle: ms  ignored if the entry is pending for this consumer
--- ARGV[9n-1] maxFailures: number  consecutive failures after which the entry is dead-lettered
--- ARGV[9n] period: ms  minimum time since the first of these failures
--- ARGV[9n+1] pause: ms  time without a failure after which the count restarts
--- Reply: each { 'Taken', Token, failures: Count } | { 'Occupied', value: text, TimeLeft } |
---   { 'NotIdle' | 'Undelivered' | 'Gone' } | { 'DeadLettered', failures: Count }.
---   'Undelivered': not delivered to a consumer yet.

local input, failures, announced, deadLetters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local group = ARGV[1]

--- @include include/forEach.lua
--- @include include/entryState.lua
--- @include include/failures.lua
--- @include include/fence.lua
--- @include include/announcement.lua
--- @include include/keepCheckpoint.lua

-- Returns whether the lease was yielded within the last millisecond. Its key must expire by itself, because other
-- consumers are waiting for the expired event
local function isLapsing(key, value)
  return string.find(value, '@@', 1, true) and redis.call('PTTL', key) <= 1 and redis.call('PTTL', key) >= 0
end

-- Returns whether the client sent the request before it yielded the lease, in which case nobody is waiting for the
-- reply. Each session counts its epochs. Hand-over epochs have a different form, and are compared as a whole
local function isLate(value, yielded)
  local epoch = string.match(value, '@@(.*)$')
  local session, count = string.match(epoch, '^(.*%.)([0-9a-z]+)$')
  for earlier in string.gmatch(yielded or '', '[^\n]+') do
    local earlierSession, earlierCount = string.match(earlier, '^(.*%.)([0-9a-z]+)$')
    if earlier == epoch or session and session == earlierSession and
      tonumber(count, 36) <= tonumber(earlierCount, 36) then
      return true
    end
  end
  return false
end

local function occupied(key, value)
  return { 'Occupied', value, string.format('%.0f', redis.call('PTTL', key)) }
end

local function attempt(entryLease, streamLease, checkpoint, fence,
  stream, entry, value, consumer, lease, minIdle, maxFailures, period, pause)
  local entryOwner, streamOwner = redis.call('GET', entryLease), redis.call('GET', streamLease)
  local token
  if streamOwner and string.sub(streamOwner, 1, #value + 2) == value .. '@@' then
    token = string.sub(streamOwner, #value + 3)
  end
  if streamOwner and not token then
    return occupied(streamLease, streamOwner)
  elseif entryOwner and entryOwner ~= value and
    (streamOwner or not isLapsing(entryLease, entryOwner)) then
    return occupied(entryLease, entryOwner)
  end
  local repeated = token and entryOwner == value
  local pending = redis.call('XPENDING', input, group, entry, entry, 1)[1]
  if not pending then
    return { isUnfinished(input, group, entry) and 'Undelivered' or 'Gone' }
  end
  if repeated or pending[2] == consumer then
    minIdle = '0'
  end
  if pending[3] < tonumber(minIdle) then
    return { 'NotIdle' }
  end
  local found = redis.call('XRANGE', input, entry, entry)[1]
  if not found then
    deleteEntry(input, group, failures, entry)
    forgetAnnouncement(announced, stream, entry)
    return { 'Gone' }
  end
  local busy, yielded = unpack(redis.call('HMGET', failures, entry .. ':busy', entry .. ':yielded'))
  if not repeated and isLate(value, yielded) then
    return { 'NotIdle' }
  end
  local count, age = failuresOf(failures, entry, pause)
  local ranOut = not repeated and busy and busy ~= value
  if ranOut then
    count = count + 1
  end
  local last = redis.call('GET', fence)
  if not repeated and count >= tonumber(maxFailures) and age >= tonumber(period) then
    local reason = 'too many failures: ' .. string.format('%.0f', count)
    buryEntry(input, group, failures, deadLetters, entry, found[2], reason, last or '')
    keepCheckpoint(checkpoint, deadMillis)
    forgetAnnouncement(announced, stream, entry)
    return { 'DeadLettered', string.format('%.0f', count) }
  end
  token = token or nextToken(last)
  ownEntry(entryLease, streamLease, value, token, lease)
  redis.call('XCLAIM', input, group, consumer, '0', entry, 'JUSTID')
  keepFence(fence, token)
  keepCheckpoint(checkpoint, keepMillis)
  if ranOut then
    setFailures(failures, entry, count, age)
  end
  -- Mark the handler as busy until a renewal says otherwise, because the first message may crash the process
  redis.call('HSET', failures, entry .. ':busy', value)
  return { 'Taken', token, string.format('%.0f', count) }
end

local replies = forEach(4, 4, 1, attempt)
redis.call('PEXPIRE', failures, keepMillis)
return replies
