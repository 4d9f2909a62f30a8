--- Renews both leases on each data stream that the caller still owns, and resets the entry's idle time.
---
--- The header comment in takeLeases.lua explains why there are two leases. Both contain the consumer and the epoch,
--- which identifies one period of ownership. While a handler is running, the `<entry>:busy` field in `failures`
--- contains them too, so takeLeases.lua counts it as a failure if the lease expires.
---
--- Never creates a lease. If one lease of a pair is lost, the other one is left to expire, because the owner may keep
--- working until it receives the reply or reaches its deadline.
---
--- KEYS[1] input
--- KEYS[2] failures
--- KEYS[2n+1] entryLease
--- KEYS[2n+2] streamLease
--- ARGV[1] group
--- ARGV[2] consumer
--- ARGV[3] lease: ms
--- ARGV[4n] entry
--- ARGV[4n+1] epoch
--- ARGV[4n+2] token: number
--- ARGV[4n+3] handler  'busy' or 'idle' if that changed, 'progress' if there was any, both, or ''
--- Reply: { Natural, 'TakenOver' | 'Vanished' }[]. The one-based index of each data stream that was not
---   renewed, and why.

local input, failures = KEYS[1], KEYS[2]
local group, consumer, lease = ARGV[1], ARGV[2], ARGV[3]
local missed, mine, claim = {}, {}, { 'XCLAIM', input, group, consumer, '0' }

--- @include include/retention.lua

local function noteHandler(entry, value, handler)
  if string.find(handler, 'busy', 1, true) then
    redis.call('HSET', failures, entry .. ':busy', value)
    redis.call('PEXPIRE', failures, keepMillis)
  elseif string.find(handler, 'idle', 1, true) then
    redis.call('HDEL', failures, entry .. ':busy')
  end
  if string.find(handler, 'progress', 1, true) then
    redis.call('HDEL', failures, entry)
  end
end

-- MGET returns nil for a key of the wrong type
local found = redis.call('MGET', unpack(KEYS, 3))
for i = 1, (#KEYS - 2) / 2 do
  local entry, epoch, token = ARGV[4 * i], ARGV[4 * i + 1], ARGV[4 * i + 2]
  local value = consumer .. '@@' .. epoch
  local entryOwner, streamOwner = found[2 * i - 1], found[2 * i]
  local entryIsMine, streamIsMine = entryOwner == value, streamOwner == value .. '@@' .. token
  if entryIsMine and streamIsMine then
    mine[#mine + 1] = i
    claim[#claim + 1] = entry
  else
    local isTaken = (entryOwner and not entryIsMine) or (streamOwner and not streamIsMine)
    missed[#missed + 1] = { i, isTaken and 'TakenOver' or 'Vanished' }
  end
end

if #mine > 0 then
  claim[#claim + 1] = 'JUSTID'
  local claimed, young = redis.pcall(unpack(claim)), {}
  if claimed.err and not string.find(claimed.err, 'NOGROUP', 1, true) then
    return claimed
  end
  for _, entry in ipairs(claimed) do
    young[entry] = true
  end
  for _, i in ipairs(mine) do
    local entryLease, streamLease, entry = KEYS[2 * i + 1], KEYS[2 * i + 2], ARGV[4 * i]
    local epoch, handler = ARGV[4 * i + 1], ARGV[4 * i + 3]
    local isThere = young[entry] or #redis.call('XRANGE', input, entry, entry) > 0
    if isThere and not young[entry] and not claimed.err then
      -- The group was recreated, and may start after this entry. Claim the entry, because otherwise nobody would find
      -- it
      redis.call('XCLAIM', input, group, consumer, '0', entry, 'FORCE', 'JUSTID')
    end
    if isThere then
      redis.call('PEXPIRE', entryLease, lease)
      redis.call('PEXPIRE', streamLease, lease)
      noteHandler(entry, consumer .. '@@' .. epoch, handler)
    else
      missed[#missed + 1] = { i, 'Vanished' }
    end
  end
end
return missed
