/**
 * Taking data streams and renewing them, many at once. Every script decides by the server's time, and touches no key that
 * is not in KEYS.
 */
import { burying, deadMillis, forgetting, keepMillis, minting, script, states } from "./streamScripts.ts"

/**
 * KEYS LBS, failures, dead letters, announced; for each stream entry lease, stream lease, fence, checkpoint.
 * ARGV group; for each stream its name, entry, value, consumer, lease ms, least idle ms, failures that are too many.
 *
 * Takes what is pending, old enough and leased by nobody: both leases first, then the entry. Taken already with the same
 * value: extends, same token. A lease that ran out under its owner counts as a failure.
 *
 * Replies for each { 'taken', token, failures }, { 'occupied', value, ms }, { 'recent' }, { 'unread' } (no consumer was
 * given it yet), { 'gone' }, { 'buried', failures } or { 'error', message }.
 */
export const take = script(`
local lbs, failures, dead, announced = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local group = ARGV[1]
${states}${minting}${forgetting}${burying}
-- Given back this very millisecond: it is left to expire for the sake of those who wait for the event
local function isLapsing(key, value)
  return string.find(value, '@@', 1, true) and redis.call('PTTL', key) <= 1 and redis.call('PTTL', key) >= 0
end

-- What was asked before this value gave it back, and arrives only now: nobody waits for it any more. Epochs of a session
-- are counted; those of a hand-over are longer than any count
local function isLate(value, gave)
  local session, count = string.match(value, '^(.*%.)([0-9a-z]+)$')
  local session2, count2 = string.match(gave or '', '^(.*%.)([0-9a-z]+)$')
  return gave == value or session and session == session2 and #count2 < 11 and
    tonumber(count, 36) <= tonumber(count2, 36)
end

local function occupied(key, value)
  return { 'occupied', value, string.format('%.0f', redis.call('PTTL', key)) }
end

local function attempt(entryLease, streamLease, fence, checkpoint, stream, entry, value, consumer, lease, minIdle, most)
  local by, held = redis.call('GET', entryLease), redis.call('GET', streamLease)
  local token
  if held and string.sub(held, 1, #value + 2) == value .. '@@' then
    token = string.sub(held, #value + 3)
  end
  if held and not token then
    return occupied(streamLease, held)
  elseif by and by ~= value and (held or not isLapsing(entryLease, by)) then
    return occupied(entryLease, by)
  end
  local again = token and by == value
  local function drop()
    if again then
      redis.call('DEL', entryLease, streamLease)
    end
  end
  local pending = redis.call('XPENDING', lbs, group, entry, entry, 1)[1]
  if not pending then
    drop()
    return { stateOf(entry) == 'new' and 'unread' or 'gone' }
  elseif not again and pending[3] < tonumber(minIdle) then
    return { 'recent' }
  end
  local found = redis.call('XRANGE', lbs, entry, entry)[1]
  if not found then
    drop()
    remove(stream, entry)
    return { 'gone' }
  end
  local counts = redis.call('HMGET', failures, entry, entry .. ':by', entry .. ':gave')
  if not again and isLate(value, counts[3]) then
    return { 'recent' }
  end
  local count = tonumber(counts[1] or '0') or 0
  local last = redis.call('GET', fence)
  if not again then
    if counts[2] and counts[2] ~= value then
      count = count + 1
    end
    if count >= tonumber(most) then
      addDead(dead, found[2], 'too many failures: ' .. string.format('%.0f', count), entry, last or '')
      redis.call('PEXPIRE', checkpoint, '${deadMillis}')
      remove(stream, entry)
      return { 'buried', string.format('%.0f', count) }
    end
    token = token or nextToken(last)
  end
  redis.call('SET', entryLease, value, 'PX', lease)
  redis.call('SET', streamLease, value .. '@@' .. token, 'PX', lease)
  if #redis.call('XCLAIM', lbs, group, consumer, again and '0' or minIdle, entry, 'JUSTID') == 0 then
    redis.call('DEL', entryLease, streamLease)
    return { 'recent' }
  end
  keepFence(fence, token)
  redis.call('PEXPIRE', checkpoint, '${keepMillis}')
  redis.call('HSET', failures, entry, string.format('%.0f', count), entry .. ':by', value)
  return { 'taken', token, string.format('%.0f', count) }
end

local replies = {}
for i = 1, (#KEYS - 4) / 4 do
  local key, at = 4 * i, 7 * i - 6
  local done, reply = pcall(attempt, KEYS[key + 1], KEYS[key + 2], KEYS[key + 3], KEYS[key + 4],
    ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], ARGV[at + 6], ARGV[at + 7])
  if not done then
    reply = { 'error', type(reply) == 'table' and reply.err or tostring(reply) }
  end
  replies[i] = reply
end
redis.call('PEXPIRE', failures, '${keepMillis}')
return replies
`)

/**
 * KEYS LBS; for each stream entry lease, stream lease.
 * ARGV group, consumer, lease ms; for each stream entry, epoch, token.
 *
 * Both leases of what is still the caller's last for the whole lease again, and its entries are young again. Never
 * creates a key. What is left of the leases of the others runs out: until the answer comes, or the deadline, their owner
 * works under them.
 *
 * Replies { index from 1, 'takenOver' or 'vanished' } for each that was not renewed.
 */
export const renew = script(`
local lbs = KEYS[1]
local group, consumer, lease = ARGV[1], ARGV[2], ARGV[3]
local missed, mine, claim = {}, {}, { 'XCLAIM', lbs, group, consumer, '0' }

-- A key of another type reads as none
local found = redis.call('MGET', unpack(KEYS, 2))
for i = 1, (#KEYS - 1) / 2 do
  local entry, value = ARGV[3 * i + 1], consumer .. '@@' .. ARGV[3 * i + 2]
  local by, held = found[2 * i - 1], found[2 * i]
  local byIsMine, heldIsMine = by == value, held == value .. '@@' .. ARGV[3 * i + 3]
  if byIsMine and heldIsMine then
    mine[#mine + 1] = i
    claim[#claim + 1] = entry
  else
    local isTaken = (by and not byIsMine) or (held and not heldIsMine)
    missed[#missed + 1] = { i, isTaken and 'takenOver' or 'vanished' }
  end
end

if #mine > 0 then
  claim[#claim + 1] = 'JUSTID'
  local claimed, young = redis.pcall(unpack(claim)), {}
  if claimed.err and not string.find(claimed.err, 'NOGROUP', 1, true) then
    return redis.error_reply(claimed.err)
  end
  for _, entry in ipairs(claimed) do
    young[entry] = true
  end
  for _, i in ipairs(mine) do
    local entry = ARGV[3 * i + 1]
    -- Not pending, but there: the group was made anew, and will hand it out again
    if young[entry] or #redis.call('XRANGE', lbs, entry, entry) > 0 then
      redis.call('PEXPIRE', KEYS[2 * i], lease)
      redis.call('PEXPIRE', KEYS[2 * i + 1], lease)
    else
      missed[#missed + 1] = { i, 'vanished' }
    end
  end
end
return missed
`)
