/**
 * The scripts of the mutex. Their text is constant; names and numbers travel in KEYS and ARGV only. Every script decides
 * by the server's time, and touches no key that is not in KEYS.
 */
import * as Redis from "effect/persistence/Redis"
import { ownership } from "./lua.ts"

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
