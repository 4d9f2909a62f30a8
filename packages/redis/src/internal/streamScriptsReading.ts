/** Announcing and finding. The rules of the other scripts hold here too. */
import { forgetting, keepMillis, script, states } from "./streamScripts.ts"

/**
 * KEYS LBS, start. ARGV group.
 * Makes the group, from the first entry on. Replies '1' if it was made.
 */
export const prepare = script(`
local reply = redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM')
if not reply.err then
  redis.call('SET', KEYS[2], '0-0', 'PX', '${keepMillis}')
  return '1'
elseif string.find(reply.err, 'BUSYGROUP', 1, true) then
  return '0'
end
return reply
`)

/**
 * KEYS LBS, announced. ARGV group; for each its stream and its payload.
 * Adds what has no unfinished announcement. Replies for each { entry, '1' if it was added }.
 */
export const announce = script(`
local lbs, announced, group = KEYS[1], KEYS[2], ARGV[1]
${states}
local replies = {}
for i = 2, #ARGV, 2 do
  local stream = ARGV[i]
  local entry = redis.call('HGET', announced, stream)
  local state = entry and stateOf(entry)
  if state == 'pending' or state == 'new' then
    replies[#replies + 1] = { entry, '0' }
  else
    entry = redis.call('XADD', lbs, '*', 'lbs-input', ARGV[i + 1])
    redis.call('HSET', announced, stream, entry)
    replies[#replies + 1] = { entry, '1' }
  end
end
redis.call('PEXPIRE', announced, '${keepMillis}')
return replies
`)

/**
 * KEYS LBS, failures, announced. ARGV group, least idle ms, first id, count, consumer or ''.
 * Removes what is pending and deleted. Replies { where to go on or '', { { id, consumer, idle ms, deliveries, fields } } }.
 */
export const pending = script(`
local lbs, failures, announced = KEYS[1], KEYS[2], KEYS[3]
local group, minIdle, from, count, consumer = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
${forgetting}
local command = { 'XPENDING', lbs, group, 'IDLE', minIdle, from, '+', count }
if consumer ~= '' then
  command[#command + 1] = consumer
end
local rows = redis.call(unpack(command))
local found = {}
for _, row in ipairs(rows) do
  local entry = redis.call('XRANGE', lbs, row[1], row[1])[1]
  if entry then
    found[#found + 1] = { row[1], row[2], row[3], row[4], entry[2] }
  else
    remove('', row[1])
  end
end
return { #rows == tonumber(count) and rows[#rows][1] or '', found }
`)

/**
 * KEYS LBS, announced. ARGV group, stream.
 * Replies the unfinished entry that was announced here last, with its fields, or nothing.
 */
export const findAnnounced = script(`
local lbs, announced, group = KEYS[1], KEYS[2], ARGV[1]
${states}
local entry = redis.call('HGET', announced, ARGV[2])
local state = entry and stateOf(entry)
if state == 'pending' or state == 'new' then
  return redis.call('XRANGE', lbs, entry, entry)
end
return {}
`)

/**
 * KEYS LBS. ARGV group, entry.
 * Replies 'gone', 'pending', 'new' or 'finished'.
 */
export const state = script(`
local lbs, group = KEYS[1], ARGV[1]
${states}
return stateOf(ARGV[2])
`)
