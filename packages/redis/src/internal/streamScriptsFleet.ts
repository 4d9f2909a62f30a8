/** The checkpoint of a data stream, the fleet, and what operators need. The rules of the other scripts hold here too. */
import { burying, comparing, fields, keepMillis, script } from "./streamScripts.ts"

const now = /* lua */ `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
`

const moving = /* lua */ `
local streamLease, checkpoint, failures = KEYS[1], KEYS[2], KEYS[3]
local held, entry, id = ARGV[1], ARGV[2], ARGV[3]
${comparing}
local function move()
  if redis.call('GET', streamLease) ~= held then
    return 'NotOwner'
  end
  local last = redis.call('GET', checkpoint)
  if last and compareIds(id, last) <= 0 then
    return 'Behind'
  end
  redis.call('SET', checkpoint, id, 'PX', '${keepMillis}')
  redis.call('HDEL', failures, entry)
  if redis.call('HSET', failures, entry .. ':moved', '1') == 1 then
    redis.call('PEXPIRE', failures, '${keepMillis}')
  end
  return 'Committed'
end
`

/**
 * KEYS stream lease, checkpoint, failures. ARGV value of the stream lease, entry, id of the message.
 * Moves the checkpoint forward. Replies 'Committed', 'Behind' or 'NotOwner'.
 */
export const commit = script(`${moving}
return move()
`)

/**
 * KEYS further the dead letters of the data stream. ARGV further the reason, the token, and the fields.
 */
export const buryMessage = script(`${moving}${burying}
local moved = move()
if moved == 'Committed' then
  addDead(KEYS[4], { unpack(ARGV, 6) }, ARGV[4], id, ARGV[5])
end
return moved
`)

/** Members that were heard of in time; the others are removed. */
const living = /* lua */ `${now}
local function living()
  local found = {}
  local all = redis.call('HGETALL', members)
  for i = 1, #all, 2 do
    local capacity, owned, seen, expiry = string.match(all[i + 1], '^(%d+)|(%d+)|(%d+)|(%d+)$')
    if seen and tonumber(seen) + tonumber(expiry) > now then
      found[#found + 1] = { all[i], capacity, owned }
    else
      redis.call('HDEL', members, all[i])
    end
  end
  return found
end
`

/**
 * KEYS members. ARGV consumer@@session, capacity, owned, expiry ms.
 * Replies { consumer@@session, capacity, owned } for each member.
 */
export const beat = script(`
local members, member, capacity, owned, expiry = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
${living}
redis.call('HSET', members, member, table.concat({ capacity, owned, string.format('%.0f', now), expiry }, '|'))
if redis.call('PTTL', members) < tonumber(expiry) then
  redis.call('PEXPIRE', members, expiry)
end
return living()
`)

/**
 * KEYS LBS, announced, failures. ARGV group, idle ms.
 * Removes consumers that have nothing pending: with one, its pending entries would go. What belongs to unfinished
 * announcements is kept for longer. Replies how many were removed.
 */
export const reap = script(`
local lbs, group = KEYS[1], ARGV[1]
${fields}
if redis.call('EXISTS', lbs) == 1 and redis.call('XLEN', lbs) > 0 then
  redis.call('PEXPIRE', KEYS[2], '${keepMillis}')
  redis.call('PEXPIRE', KEYS[3], '${keepMillis}')
end
if not lastDelivered() then
  return '0'
end
local removed = 0
for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', lbs, group)) do
  if field(info, 'pending') == 0 and field(info, 'idle') >= tonumber(ARGV[2]) then
    redis.call('XGROUP', 'DELCONSUMER', lbs, group, field(info, 'name'))
    removed = removed + 1
  end
end
return string.format('%.0f', removed)
`)

/**
 * KEYS LBS, start. ARGV group, where to begin or '', count.
 * Of the entries that the group has been given, deletes those that are pending no more, unless there is another group.
 * Where the group was made by others, only what comes after the first look is known to have been given.
 * Replies { where to go on or '', how many were deleted }.
 */
export const removeFinished = script(`
local lbs, start, group = KEYS[1], KEYS[2], ARGV[1]
local count = tonumber(ARGV[3])
${comparing}${fields}
local last, groups = lastDelivered()
if not last or groups > 1 then
  return { '', '0' }
end
local from = redis.call('GET', start) or last
redis.call('SET', start, from, 'PX', '${keepMillis}')
if ARGV[2] ~= '' and compareIds(ARGV[2], from) > 0 then
  from = ARGV[2]
end
local page = redis.call('XRANGE', lbs, '(' .. from, last, 'COUNT', count)
if #page == 0 then
  return { '', '0' }
end
local isPending, first, rows = {}, page[1][1], nil
repeat
  -- More than there are entries: those that were deleted while they were pending are among them
  rows = redis.call('XPENDING', lbs, group, first, page[#page][1], count)
  for _, row in ipairs(rows) do
    isPending[row[1]] = true
  end
  first = #rows > 0 and '(' .. rows[#rows][1]
until #rows < count
local removed = 0
for _, entry in ipairs(page) do
  if not isPending[entry[1]] then
    removed = removed + redis.call('XDEL', lbs, entry[1])
  end
end
return { #page == count and page[#page][1] or '', string.format('%.0f', removed) }
`)

/**
 * KEYS LBS, announced, failures. ARGV cursor of failures, of announced, '' for one that has come to its end, count.
 * Forgets what others have finished: their consumers know nothing of these tables. Replies where to go on.
 */
export const forgetFinished = script(`
local lbs, announced, failures = KEYS[1], KEYS[2], KEYS[3]
local function scan(key, cursor, entryOf)
  if cursor == '' then
    return ''
  end
  local reply = redis.call('HSCAN', key, cursor, 'COUNT', ARGV[3])
  for i = 1, #reply[2], 2 do
    local entry = entryOf(reply[2][i], reply[2][i + 1])
    if entry and #redis.call('XRANGE', lbs, entry, entry) == 0 then
      redis.call('HDEL', key, reply[2][i])
    end
  end
  return reply[1] == '0' and '' or reply[1]
end
local function id(text)
  return string.match(text, '^%d+%-%d+')
end
return {
  scan(failures, ARGV[1], function(field) return id(field) end),
  scan(announced, ARGV[2], function(_, entry) return id(entry) end)
}
`)

/**
 * KEYS checkpoints. They last for another period.
 */
export const keep = script(`
for _, checkpoint in ipairs(KEYS) do
  redis.call('PEXPIRE', checkpoint, '${keepMillis}')
end
return '1'
`)

/**
 * KEYS LBS, dead letters, members. ARGV group.
 * Replies { announced, pending, longest idle ms, dead letters, { { name, pending, idle ms } }, members }.
 */
export const inspect = script(`
local lbs, dead, members, group = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
${fields}${living}
local consumers, oldest, count = {}, 0, 0
if lastDelivered() then
  for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', lbs, group)) do
    consumers[#consumers + 1] = { field(info, 'name'), field(info, 'pending'), field(info, 'idle') }
  end
  local from = '-'
  repeat
    local page = redis.call('XPENDING', lbs, group, from, '+', 1000)
    for _, row in ipairs(page) do
      oldest = math.max(oldest, row[3])
    end
    count = count + #page
    from = #page == 1000 and '(' .. page[#page][1]
  until not from
end
return { redis.call('XLEN', lbs), count, oldest, redis.call('XLEN', dead), consumers, living() }
`)

/**
 * KEYS LBS, dead letters, announced, failures. ARGV id of the dead letter, its stream or ''.
 * Announces it again: it goes on where it was. Replies '1', or '0' if there is no such letter.
 */
export const revive = script(`
local lbs, dead, announced, failures = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local letter = redis.call('XRANGE', dead, ARGV[1], ARGV[1])[1]
if not letter then
  return '0'
end
local command = { 'XADD', lbs, '*' }
for i = 1, #letter[2], 2 do
  local name = letter[2][i]
  if name ~= 'simba-reason' and name ~= 'simba-id' and name ~= 'simba-token' then
    command[#command + 1] = name
    command[#command + 1] = letter[2][i + 1]
  end
end
local entry = redis.call(unpack(command))
redis.call('XDEL', dead, ARGV[1])
redis.call('HSET', failures, entry .. ':moved', '1')
redis.call('PEXPIRE', failures, '${keepMillis}')
if ARGV[2] ~= '' then
  redis.call('HSET', announced, ARGV[2], entry)
  redis.call('PEXPIRE', announced, '${keepMillis}')
end
return '1'
`)
