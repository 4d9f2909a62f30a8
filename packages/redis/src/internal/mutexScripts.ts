/**
 * The scripts of the mutex. Their text is constant; names and numbers travel in KEYS and ARGV only. Every script decides
 * by the server's time, and touches no key that is not in KEYS.
 */
import * as Redis from "effect/persistence/Redis"
import { keys, kinds, minting, ownership, waiters } from "./lua.ts"

type AcquireArgs = readonly [
  owner: string,
  queue: string,
  fence: string,
  reserved: string,
  id: string,
  mode: "try" | "wait",
  leaseMillis: number,
  confirmMillis: number,
  ticket: string,
  skipDead: "0" | "1",
  unfair: "0" | "1"
]

/**
 * KEYS owner key, wait queue, fence, reservation. ARGV wire id, 'try' or 'wait', lease ms, confirm ms, ticket or '',
 * skip dead waiters, unfair.
 * Free: grants the caller, or unless it is unfair the live waiter that is ahead of it. Already the owner: extends, same
 * token. Otherwise refuses, and in mode 'wait' queues the caller under its ticket.
 * Reply { ownership, token or '', ticket or '', position among ours, other implementations take part }.
 */
export const acquire = Redis.script((...args: AcquireArgs) => args, {
  numberOfKeys: 4,
  lua: `${keys}
local id, mode, lease, confirm = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local ticket, skipDead, unfair = tonumber(ARGV[5]), ARGV[6] == '1', ARGV[7] == '1'
${minting}
local current = redis.call('GET', owner)
local crowded = redis.call('EXISTS', queue, reserved) > 0

local function grant()
  local token = current and redis.call('GET', fence) or mint()
  redis.call('SET', owner, id, 'PX', lease)
  if crowded then
    redis.call('ZREM', queue, id)
    redis.call('DEL', reserved)
  end
  redis.call('PUBLISH', owner, 'acquired@@' .. id)
  return { id .. '@@' .. lease, token, '', '0', '0' }
end

-- Before the rest is defined: closures cost more than the commands of the usual case
if current == id or (not current and (unfair or not crowded)) then
  return grant()
end
${kinds}${waiters}${ownership}
local function enter()
  local score = redis.call('ZSCORE', queue, id)
  if score then
    return string.format('%.6f', tonumber(score))
  end
  local at = micros()
  if ticket and ticket * 1000000 < at + 1 then
    at = math.floor(ticket * 1000000 + 0.5)
  else
    local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2]
    if last then
      at = math.max(at, math.floor(tonumber(last) * 1000000 + 0.5) + 1)
    end
  end
  if at % 1000000 == 0 then
    at = at + 1
  end
  local text = string.format('%.6f', at / 1000000)
  redis.call('ZADD', queue, text, id)
  return text
end

-- Every waiter touches the queue before it sleeps, for longer than it will sleep
local function keepQueue()
  local keep = math.max(redis.call('PTTL', owner), 0) + tonumber(lease) + tonumber(confirm)
  if redis.call('PTTL', queue) < keep then
    redis.call('PEXPIRE', queue, string.format('%.0f', keep))
  end
end

local function place(current)
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
  return grant()
end

if mode == 'try' then
  return { ownership(), '', '', '0', '0' }
end
local mine = enter()
keepQueue()
local position, foreign = place(current)
return { ownership(), '', mine, position, heldBack and '1' or foreign }
`
}).withReturnType<unknown>()

type ReleaseArgs = readonly [
  owner: string,
  queue: string,
  fence: string,
  reserved: string,
  id: string,
  confirmMillis: number,
  skipDead: "0" | "1",
  unfair: "0" | "1"
]

/**
 * KEYS as acquire. ARGV wire id, confirm ms, skip dead waiters, unfair.
 * The owner: hands the mutex to the first live waiter, or frees it; if unfair, frees it and tells the first. Anybody
 * else: leaves the queue, and if it was the first, tells the new first when to look.
 * Reply the ownership afterwards.
 */
export const release = Redis.script((...args: ReleaseArgs) => args, {
  numberOfKeys: 4,
  lua: `${keys}
local id, confirm, skipDead, unfair = ARGV[1], ARGV[2], ARGV[3] == '1', ARGV[4] == '1'
local current = redis.call('GET', owner)
if current == id then
  redis.call('DEL', owner)
  if redis.call('EXISTS', queue) == 0 then
    return '@@'
  end
end
${minting}${kinds}${waiters}${ownership}
if current == id then
  redis.call('ZREM', queue, id)
  handOver(id, confirm, nil, nil, unfair)
else
  local rank = redis.call('ZRANK', queue, id)
  if rank then
    redis.call('ZREM', queue, id)
    if rank == 0 then
      tellFirst(math.max(redis.call('PTTL', owner), 0))
    end
  end
end
return ownership()
`
}).withReturnType<unknown>()

/**
 * KEYS owner keys. ARGV for each key the wire id and the lease in ms.
 * Renews each lease to its full length if its id is still the owner; never creates a key. An error at one key leaves the
 * others alone.
 * Reply one entry { index from 1, 'owner' or 'error', ownership or error } for each that was not renewed.
 */
export const guard = Redis.script(
  (owners: ReadonlyArray<string>, args: ReadonlyArray<string | number>) => [...owners, ...args],
  {
    numberOfKeys: (owners) => owners.length,
    lua: `
local missed = {}
for i, key in ipairs(KEYS) do
  local current = redis.pcall('GET', key)
  if type(current) == 'table' then
    missed[#missed + 1] = { i, 'error', current.err }
  elseif current == ARGV[2 * i - 1] then
    redis.call('PEXPIRE', key, ARGV[2 * i])
  elseif current then
    missed[#missed + 1] = { i, 'owner', current .. '@@' .. string.format('%.0f', redis.call('PTTL', key)) }
  else
    missed[#missed + 1] = { i, 'owner', '@@' }
  end
end
return missed
`
  }
).withReturnType<unknown>()

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
