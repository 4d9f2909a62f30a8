/** The ends of a holding. Each refuses whoever does not hold both leases. The rules of the other scripts hold here too. */
import { burying, deadMillis, forgetting, keepMillis, minting, releasedIdleMillis, script } from "./streamScripts.ts"

/** KEYS LBS, failures, announced, entry lease, stream lease. ARGV group, stream, entry, consumer, value, token. */
const holding = /* lua */ `
local lbs, failures, announced, entryLease, streamLease = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local group, stream, entry, consumer, value, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
${forgetting}
local function owns()
  return redis.call('GET', entryLease) == value and redis.call('GET', streamLease) == value .. '@@' .. token
end

-- Without a group there is nothing pending, and the next group hands everything out again
local function claimFor(owner, idle)
  local reply = redis.pcall('XCLAIM', lbs, group, owner, '0', entry, 'IDLE', idle, 'JUSTID')
  if reply.err and not string.find(reply.err, 'NOGROUP', 1, true) then
    error(reply.err)
  end
end
`

/** No handler runs under its lease any more, and what was asked for under it before comes too late. */
const givingUp = /* lua */ `
local function gaveUp()
  redis.call('HDEL', failures, entry .. ':by')
  redis.call('HSET', failures, entry .. ':gave', value)
  redis.call('PEXPIRE', failures, '${keepMillis}')
end
`

/**
 * Replies 'Done', 'AlreadyDone' if there is no such entry any more, or 'NotOwner'.
 */
export const done = script(`${holding}
if owns() then
  local count = remove(stream, entry)
  redis.call('DEL', entryLease, streamLease)
  return count > 0 and 'Done' or 'AlreadyDone'
end
return #redis.call('XRANGE', lbs, entry, entry) == 0 and 'AlreadyDone' or 'NotOwner'
`)

/**
 * ARGV further the channel of hints.
 * Replies 'Released' or 'NotOwner'.
 */
export const release = script(`${holding}${givingUp}
if not owns() then
  return 'NotOwner'
end
claimFor(consumer, '${releasedIdleMillis}')
gaveUp()
redis.call('DEL', streamLease)
-- Expires with its event, which a deletion or an expiry of 0 has not
redis.call('PEXPIRE', entryLease, 1)
redis.call('PUBLISH', ARGV[7], 'released@@' .. entry .. '@@' .. stream)
return 'Released'
`)

/**
 * ARGV further the number of the attempt, or ''. The last one again counts nothing, nor does one before it: an answer was lost, and
 * what was sent first may come after all that was sent since.
 * Replies the failures so far, or 'NotOwner'.
 */
export const fail = script(`${holding}
if not owns() then
  return 'NotOwner'
end
local attempt, prefix = tonumber(ARGV[7]), value .. '#'
if attempt then
  local last = redis.call('HGET', failures, entry .. ':last')
  if last and string.sub(last, 1, #prefix) == prefix and attempt <= tonumber(string.sub(last, #prefix + 1)) then
    return redis.call('HGET', failures, entry) or '0'
  end
end
local count = redis.call('HINCRBY', failures, entry, 1)
if attempt then
  redis.call('HSET', failures, entry .. ':last', prefix .. ARGV[7])
end
redis.call('PEXPIRE', failures, '${keepMillis}')
return string.format('%.0f', count)
`)

/**
 * KEYS further the dead letters, the checkpoint, which lasts as long as this letter would alone. ARGV further the reason.
 * Replies 'Buried' or 'NotOwner'.
 */
export const bury = script(`${holding}${burying}
if not owns() then
  return 'NotOwner'
end
local found = redis.call('XRANGE', lbs, entry, entry)[1]
if found then
  addDead(KEYS[6], found[2], ARGV[7], entry, token)
  redis.call('PEXPIRE', KEYS[7], '${deadMillis}')
end
remove(stream, entry)
redis.call('DEL', entryLease, streamLease)
return 'Buried'
`)

/**
 * KEYS LBS, failures, announced, dead letters. ARGV group, entry, consumer, reason.
 * Replies '1', or '0' if the entry is not pending at that consumer.
 */
export const buryMalformed = script(`
local lbs, failures, announced, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local group, entry, consumer, reason = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
${forgetting}${burying}
local pending = redis.call('XPENDING', lbs, group, entry, entry, 1)[1]
if not pending or pending[2] ~= consumer then
  return '0'
end
local found = redis.call('XRANGE', lbs, entry, entry)[1]
if found then
  addDead(dead, found[2], reason, entry, '')
end
remove('', entry)
return found and '1' or '0'
`)

/**
 * KEYS further fence, given. ARGV further the channel of hints, the receiver, its session, confirm ms.
 * The epoch that the receiver gets is made of the token, which its own never are.
 * Replies 'HandedOver' or 'NotOwner'.
 */
export const handOver = script(`${holding}${givingUp}${minting}
local fence, given = KEYS[6], KEYS[7]
local channel, receiver, session, confirm = ARGV[7], ARGV[8], ARGV[9], ARGV[10]
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
gaveUp()
local message = table.concat({ 'given', session, epoch, newToken, entry, receiver, stream }, '@@')
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZREMRANGEBYSCORE', given, '-inf', string.format('%.0f', now - 1))
redis.call('ZADD', given, string.format('%.0f', now + tonumber(confirm)), message)
if redis.call('PTTL', given) < tonumber(confirm) then
  redis.call('PEXPIRE', given, confirm)
end
redis.call('PUBLISH', channel, message)
return 'HandedOver'
`)

/**
 * KEYS given. ARGV the receiver and its session.
 * Replies the messages of what was handed to it and may be unconfirmed.
 */
export const given = script(`
local found = {}
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local prefix, middle = 'given@@' .. ARGV[2] .. '@@', '@@' .. ARGV[1] .. '@@'
for _, message in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], string.format('%.0f', now), '+inf')) do
  if string.sub(message, 1, #prefix) == prefix and string.find(message, middle, 1, true) then
    found[#found + 1] = message
  end
end
return found
`)

/**
 * KEYS further the checkpoint.
 * What was handed over and is still the receiver's: from now on its handler runs, so that a lease that runs out is a
 * failure. Replies the entry with its fields, or nothing.
 */
export const adopt = script(`${holding}
if not owns() then
  return {}
end
redis.call('HSET', failures, entry .. ':by', value)
redis.call('PEXPIRE', failures, '${keepMillis}')
redis.call('PEXPIRE', KEYS[6], '${keepMillis}')
return redis.call('XRANGE', lbs, entry, entry)
`)
