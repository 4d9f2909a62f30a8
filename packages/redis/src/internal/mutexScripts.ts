/**
 * The scripts of the mutex. Their text is constant; names and numbers travel in KEYS and ARGV only. Every script decides
 * by the server's time, and touches no key that is not in KEYS.
 */
import * as Redis from "effect/persistence/Redis"
import { entering, fenceMillis, granting, kinds, minting, ownership, waiters } from "./lua.ts"

/**
 * Any number of acquires and releases, in the order given; one that fails leaves the others alone.
 *
 * KEYS for each operation owner key, wait queue, fence, reservation; none for one on the same mutex as the one before it,
 * whose letter is a capital then.
 * ARGV one letter for each operation, skip dead waiters, lease ms and confirm ms of the plain ones. Then for each
 *
 * - `t`, a plain try: wire id.
 * - `a`, any acquire: wire id, 'try' or 'wait', lease ms, confirm ms, ticket or '', unfair, how many tokens to reserve.
 * - `r`, a plain release: wire id.
 * - `d`, any release: wire id, confirm ms, unfair, wire id to queue or '', its lease ms, how many tokens it reserves.
 *
 * Acquire. Free: grants the caller, or unless it is unfair the live waiter that is ahead of it. Already the owner: extends,
 * same token, at least as many reserved. Otherwise refuses, and in mode 'wait' queues the caller under its ticket.
 * Replies the token, or { ownership, ticket or '', position among ours, other implementations take part }.
 *
 * Release. The owner: hands the mutex to the first live waiter, or frees it; if unfair, frees it and tells the first.
 * Anybody else: leaves the queue, and if it was the first, tells the new first when to look. The id to queue goes behind
 * all who wait, and is granted the mutex where nobody is before it. Asked again, it keeps its place or its grant.
 * Replies the ownership afterwards, or with an id to queue { ownership, its ticket, its token if it was granted or '' }.
 *
 * One that failed replies { 'error', message }.
 */
export const batch = /* lua */ `
local call, attempt, codes = redis.call, redis.pcall, ARGV[1]
local skipDead, lease0, confirm0 = ARGV[2] == '1', ARGV[3], ARGV[4]
local owner, queue, fence, reserved
local stamp
local perform

local replies, at, key = {}, 5, 1
for i = 1, #codes do
local code, first, reply = string.byte(codes, i), at, nil
if code < 97 then
  -- A capital letter: the mutex of the operation before
  code = code + 32
else
  owner, queue, fence, reserved = KEYS[key], KEYS[key + 1], KEYS[key + 2], KEYS[key + 3]
  key = key + 4
end

if code == 116 then
  -- A plain try of a free mutex that nobody waits for
  at = first + 1
  local id = ARGV[first]
  local set = call('EXISTS', queue, reserved) == 0 and attempt('SET', owner, id, 'PX', lease0, 'NX')
  if set and set.ok then
    if not stamp then
      local time = call('TIME')
      stamp = time[1] .. string.sub('00000' .. time[2], -6)
    end
    local last = attempt('SET', fence, stamp, 'PX', '${fenceMillis}', 'GET')
    local number = not last and 0 or tonumber(last)
    if number and number < tonumber(stamp) then
      call('PUBLISH', owner, 'acquired@@' .. id)
      reply = stamp
    else
      -- Ahead of the clock, reserved or no fence at all: as if nothing had been done
      call('DEL', owner)
      if type(last) == 'string' then
        call('SET', fence, last, 'PX', '${fenceMillis}')
      end
    end
  end
elseif code == 114 then
  -- A plain release by the owner of a mutex that nobody waits for
  at = first + 1
  if attempt('GET', owner) == ARGV[first] and call('EXISTS', queue) == 0 then
    call('DEL', owner)
    reply = '@@'
  end
elseif code == 97 then
  -- A confirmation that reserves nothing
  at = first + 7
  local id = ARGV[first]
  if ARGV[first + 6] == '0' and attempt('GET', owner) == id then
    local text = attempt('GET', fence)
    local token = type(text) == 'string' and string.match(text, '^(%d+)/?%d*$')
    if token and type(attempt('ZREM', queue, id)) == 'number' then
      call('DEL', reserved)
      call('SET', owner, id, 'PX', ARGV[first + 2])
      call('PUBLISH', owner, 'acquired@@' .. id)
      reply = token
    end
  end
else
  at = first + 6
end

-- Every operation in full. Closures cost more than the commands of the usual cases, which need none
if not reply and not perform then
${minting}${granting}
local function grant(id, lease, spare, isOwner)
  local token = take(id, lease, spare, isOwner)
  redis.call('ZREM', queue, id)
  redis.call('DEL', reserved)
  return token
end
${kinds}${waiters}${entering}${ownership}
local function place(id, current)
  local foreign = current and not isOurId(current)
  local ahead, found = 0, false
  local head = redis.call('ZRANGE', queue, 0, 15, 'WITHSCORES')
  for i = 1, #head, 2 do
    if head[i] == id then
      found = true
    elseif not isOurTicket(tonumber(head[i + 1])) then
      foreign = true
    elseif not found then
      ahead = ahead + 1
    end
  end
  if not found then
    ahead = redis.call('ZRANK', queue, id) or ahead
  end
  return string.format('%.0f', ahead), foreign and '1' or '0'
end

-- Somebody owns it, or somebody waits for it
local function contend(current, id, mode, lease, confirm, ticket, spare)
  local heldBack = false
  if not current then
    local score = redis.call('ZSCORE', queue, id)
    local awaited = redis.call('GET', reserved)
    -- A ticket without a place: a stock release took this waiter out of the queue, so it is its turn
    if awaited and (score or not ticket) then
      heldBack = true
    elseif not awaited then
      handOver(id, confirm, id, tonumber(score or '') or ticket)
      current = redis.call('GET', owner)
      heldBack = not current and redis.call('EXISTS', reserved) > 0
    end
  elseif redis.call('GET', reserved) == current then
    -- The stock waiter that was told to come has come
    redis.call('DEL', reserved)
  end
  if not current and not heldBack then
    return grant(id, lease, spare)
  end
  if mode == 'try' then
    return { ownership(), '', '0', '0' }
  end
  local mine = enter(id, ticket)
  keepQueue(lease, confirm)
  local position, foreign = place(id, current)
  return { ownership(), mine, position, heldBack and '1' or foreign }
end

-- It has been deleted if it was the caller's
local function handBack(current, id, confirm, unfair, nextId, lease, spare)
  local rank = redis.call('ZRANK', queue, id)
  if rank then
    redis.call('ZREM', queue, id)
  end
  local ticket, token = '', ''
  if nextId ~= '' then
    ticket = enter(nextId)
  end
  local isFree = false
  if current == id then
    isFree = not handOver(id, confirm, nextId, nil, unfair)
  elseif nextId ~= '' and not current and redis.call('EXISTS', reserved) == 0 then
    isFree = not handOver(id, confirm, nextId)
  elseif rank == 0 then
    tellFirst(math.max(redis.call('PTTL', owner), 0))
  end
  if nextId == '' then
    return ownership()
  end
  if isFree or current == nextId then
    token = take(nextId, lease, spare, not isFree)
    redis.call('ZREM', queue, nextId)
  else
    keepQueue(lease, confirm)
  end
  return { ownership(), ticket, token }
end

local function acquire(id, mode, lease, confirm, ticket, unfair, spare)
  if redis.call('EXISTS', queue, reserved) == 0 then
    -- Read before anything is written, so that a fence of the wrong type leaves no owner that does not know
    local last = redis.call('GET', fence)
    if redis.call('SET', owner, id, 'PX', lease, 'NX') then
      redis.call('PUBLISH', owner, 'acquired@@' .. id)
      return mint(spare, last)
    end
  end
  local current = redis.call('GET', owner)
  if current == id or (unfair and not current) then
    return grant(id, lease, spare, current)
  end
  return contend(current, id, mode, lease, confirm, ticket, spare)
end

local function release(id, confirm, unfair, nextId, lease, spare)
  local current = redis.call('GET', owner)
  if current == id then
    redis.call('DEL', owner)
    if redis.call('EXISTS', queue) == 0 then
      if nextId == '' then
        return '@@'
      end
      return { nextId .. '@@' .. lease, ticketAt(micros()), take(nextId, lease, spare) }
    end
  end
  return handBack(current, id, confirm, unfair, nextId, lease, spare)
end

perform = function(code, first)
  if code == 116 then
    return acquire(ARGV[first], 'try', lease0, confirm0, nil, false, 0)
  elseif code == 114 then
    return release(ARGV[first], confirm0, false, '')
  elseif code == 97 then
    return acquire(ARGV[first], ARGV[first + 1], ARGV[first + 2], ARGV[first + 3], tonumber(ARGV[first + 4]),
      ARGV[first + 5] == '1', tonumber(ARGV[first + 6]))
  end
  return release(ARGV[first], ARGV[first + 1], ARGV[first + 2] == '1', ARGV[first + 3], ARGV[first + 4],
    tonumber(ARGV[first + 5]))
end
end

if not reply then
  local done
  done, reply = pcall(perform, code, first)
  if not done then
    local text = type(reply) == 'table' and reply.err or tostring(reply)
    -- What ails the whole server is no matter of one operation: the client is to leave a replica
    if string.find(text, 'READONLY', 1, true) then
      return redis.error_reply(text)
    end
    reply = { 'error', text }
  end
end
replies[i] = reply
end
return replies
`

/**
 * KEYS owner keys. ARGV the wire id for each key, then the lease in ms for each key, or one for all.
 * Renews each lease to its full length if its id is still the owner; never creates a key. An error at one key leaves the
 * others alone.
 * Reply one entry { index from 1, 'owner' or 'error', ownership or error } for each that was not renewed.
 */
export const guard = `
local missed = {}
for i, key in ipairs(KEYS) do
  local current = redis.pcall('GET', key)
  if type(current) == 'table' then
    missed[#missed + 1] = { i, 'error', current.err }
  elseif current == ARGV[i] then
    redis.call('PEXPIRE', key, ARGV[#KEYS + i] or ARGV[#KEYS + 1])
  elseif current then
    missed[#missed + 1] = { i, 'owner', current .. '@@' .. string.format('%.0f', redis.call('PTTL', key)) }
  else
    missed[#missed + 1] = { i, 'owner', '@@' }
  end
end
return missed
`

/**
 * KEYS owner key. Reply the ownership.
 */
export const look = Redis.script((owner: string) => [owner], {
  numberOfKeys: 1,
  lua: `
local owner = KEYS[1]
${ownership}
return ownership()
`
}).withReturnType<unknown>()
