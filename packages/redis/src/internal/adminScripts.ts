/** The scripts for looking, intervening and sharing schedules. The rules of the others hold here too. */
import * as Redis from "effect/persistence/Redis"
import { clock, keys, kinds, minting, ownership, waiters } from "./lua.ts"

/**
 * KEYS owner key, wait queue, fence. ARGV how many waiters to name.
 * Reply { ownership, token of an owner of ours or '', length of the queue, { { id, waited ms }, ... } }.
 */
export const inspect = Redis.script(
  (owner: string, queue: string, fence: string, limit: number) => [owner, queue, fence, limit],
  {
    numberOfKeys: 3,
    lua: `
local owner, queue, fence = KEYS[1], KEYS[2], KEYS[3]
local limit = tonumber(ARGV[1])
${kinds}${ownership}
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local current = redis.call('GET', owner)
local token = current and inboxOf(current) and string.match(redis.call('GET', fence) or '', '^%d*') or ''
local waiters = {}
if limit > 0 then
  local head = redis.call('ZRANGE', queue, 0, limit - 1, 'WITHSCORES')
  for i = 1, #head, 2 do
    local waited = math.max(0, now - tonumber(head[i + 1]) * 1000)
    waiters[#waiters + 1] = { head[i], string.format('%.0f', waited) }
  end
end
return { ownership(), token, string.format('%.0f', redis.call('ZCARD', queue)), waiters }
`
  }
).withReturnType<unknown>()

type ForceArgs = readonly [
  owner: string,
  queue: string,
  fence: string,
  reserved: string,
  confirmMillis: number,
  skipDead: "0" | "1"
]

/**
 * KEYS as acquire. ARGV confirm ms, skip dead waiters.
 * Takes the mutex from its owner, moves the fence on, hands over as a release does, and tells the old owner: one of ours
 * through its layer, another by the message that makes it look.
 * Reply the ownership before.
 */
export const force = Redis.script((...args: ForceArgs) => args, {
  numberOfKeys: 4,
  lua: `${keys}
local confirm, skipDead = ARGV[1], ARGV[2] == '1'
${clock}${minting}${kinds}${waiters}${ownership}
local before = ownership()
local current = redis.call('GET', owner)
-- First, so that a fence of the wrong type takes nothing from anybody
mint()
redis.call('DEL', owner, reserved)
handOver(current or 'nobody', confirm)
if current then
  local inbox = inboxOf(current)
  if inbox then
    redis.call('PUBLISH', inbox, 'forced@@' .. current)
  else
    redis.call('PUBLISH', owner .. ':' .. current, 'released@@' .. current)
  end
end
return before
`
}).withReturnType<unknown>()

/** How long a tick is remembered at least: longer than any two clocks that take part are apart. */
const tickMillis = 24 * 60 * 60 * 1000

/**
 * KEYS the tick of one job. ARGV period ms, scheduled instant in ms or ''.
 * The first to come in a period, or for an instant, gets it. Periods are kept as the instants at which they begin, so
 * that a job whose period changes goes on.
 * Reply { '1' if first, ms until the next period }.
 */
export const tick = Redis.script((key: string, everyMillis: number, at: number | "") => [key, everyMillis, at], {
  numberOfKeys: 1,
  lua: `
local every, at = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local period = at or math.floor(now / every) * every
local last = tonumber(redis.call('GET', KEYS[1]) or '-1') or -1
local first = period > last
if first then
  local keep = math.max(2 * every, ${tickMillis})
  redis.call('SET', KEYS[1], string.format('%.0f', period), 'PX', string.format('%.0f', keep))
end
return { first and '1' or '0', string.format('%.0f', at and 0 or period + every - now) }
`
}).withReturnType<unknown>()
