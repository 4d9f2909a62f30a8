/** What the scripts of stream ownership share: parts of their text, and how long keys are kept. */
import * as Redis from "effect/persistence/Redis"

const day = 24 * 60 * 60 * 1000

/** Fences, checkpoints, failures and announcements, after their last use. */
export const keepMillis = 7 * day

/** Dead letters, after the last. */
export const deadMillis = 30 * day

/** About how many dead letters are kept. */
export const deadLimit = 10_000

/** Idle time of what was given back: longer than any consumer waits before it claims, stock ones included. */
export const releasedIdleMillis = 60_000

/** Keys first, then the rest. */
export const script = (lua: string) =>
  Redis.script(
    (keys: ReadonlyArray<string>, args: ReadonlyArray<string | number>) => [...keys, ...args],
    { numberOfKeys: (keys) => keys.length, lua }
  ).withReturnType<unknown>()

/** Ids of entries have two parts of up to 20 digits: more than a number of Lua holds. */
export const comparing = /* lua */ `
local function compareText(a, b)
  if #a ~= #b then
    return #a < #b and -1 or 1
  end
  return a < b and -1 or a > b and 1 or 0
end

local function compareIds(a, b)
  local aMillis, aSequence = string.match(a, '^0*(%d*)%-0*(%d*)$')
  local bMillis, bSequence = string.match(b, '^0*(%d*)%-0*(%d*)$')
  local order = compareText(aMillis, bMillis)
  return order ~= 0 and order or compareText(aSequence, bSequence)
end
`

/** `field` of one of the flat tables that XINFO answers. */
export const fields = /* lua */ `
local function field(info, name)
  for i = 1, #info, 2 do
    if info[i] == name then
      return info[i + 1]
    end
  end
end

local function lastDelivered()
  local groups = redis.pcall('XINFO', 'GROUPS', lbs)
  if groups.err then
    return nil, 0
  end
  for _, info in ipairs(groups) do
    if field(info, 'name') == group then
      return field(info, 'last-delivered-id'), #groups
    end
  end
  return nil, #groups
end
`

/**
 * How far an entry is: 'gone', 'pending', 'new' (no consumer was given it yet), or 'finished' (acknowledged, and not
 * deleted).
 */
export const states = /* lua */ `${comparing}${fields}
local function stateOf(entry)
  if #redis.call('XRANGE', lbs, entry, entry) == 0 then
    return 'gone'
  end
  local pending = redis.pcall('XPENDING', lbs, group, entry, entry, 1)
  if pending.err then
    return 'new'
  elseif #pending > 0 then
    return 'pending'
  end
  local last = lastDelivered()
  return last and compareIds(entry, last) <= 0 and 'finished' or 'new'
end
`

/** A token larger than all before, and not below the clock. */
export const minting = /* lua */ `
local function nextToken(last)
  local time = redis.call('TIME')
  local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
  return string.format('%.0f', math.max((tonumber(last) or 0) + 1, micros))
end

local function keepFence(fence, token)
  redis.call('SET', fence, token, 'PX', '${keepMillis}')
end
`

/** The end of an entry, whatever the reason. */
export const forgetting = /* lua */ `
local function forget(stream, entry)
  redis.call('HDEL', failures, entry, entry .. ':by', entry .. ':last', entry .. ':gave', entry .. ':moved')
  if stream ~= '' and redis.call('HGET', announced, stream) == entry then
    redis.call('HDEL', announced, stream)
  end
end

local function remove(stream, entry)
  redis.call('XACK', lbs, group, entry)
  local count = redis.call('XDEL', lbs, entry)
  forget(stream, entry)
  return count
end
`

/** Fields go to the dead letters as they are, with the reason, the id and the token behind them. */
export const burying = /* lua */ `
local function addDead(dead, content, reason, id, token)
  local letter = { 'XADD', dead, 'MAXLEN', '~', '${deadLimit}', '*' }
  for _, text in ipairs(content) do
    letter[#letter + 1] = text
  end
  for _, text in ipairs({ 'simba-reason', reason, 'simba-id', id, 'simba-token', token }) do
    letter[#letter + 1] = text
  end
  redis.call(unpack(letter))
  redis.call('PEXPIRE', dead, '${deadMillis}')
end
`
