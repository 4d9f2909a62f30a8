/** Parts that the scripts share. Put together they are constant texts. */

/** How long a fence outlives its last use. Afterwards the server's clock, its seed, keeps it growing. */
const fenceMillis = 7 * 24 * 60 * 60 * 1000

export const keys = /* lua */ `
local owner, queue, fence, reserved = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
`

/** Each grant takes a token larger than the last, and not below the clock. */
export const minting = /* lua */ `
local function micros()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function mint()
  local last = tonumber(redis.call('GET', fence) or '0') or 0
  local token = string.format('%.0f', math.max(last + 1, micros()))
  redis.call('SET', fence, token, 'PX', '${fenceMillis}')
  return token
end
`

/** Stock tickets are whole seconds; ours never are. Stock ids lack the counter and the random part of ours. */
export const kinds = /* lua */ `
local function isOurTicket(score)
  return score % 1 ~= 0
end

local function isOurId(id)
  return string.find(id, '^%d+%-%w%w%w%w%w%w%w%w%w%w%w%w:') ~= nil
end
`

/**
 * `walk` visits the live waiters in order and removes the dead on the way, in growing pages: each dead entry is paid for
 * once. `handOver` gives a mutex that nobody owns to the first live waiter, and tells the one behind it when to look. With
 * `unfair` the first is only told that the mutex is free, and keeps its place: whoever asks next has it.
 */
export const waiters = /* lua */ `
local function walk(visit)
  local offset, size = 0, 2
  while true do
    local page = redis.call('ZRANGE', queue, offset, offset + size - 1, 'WITHSCORES')
    if #page == 0 then
      return
    end
    local counts
    if skipDead then
      local channels = {}
      for i = 1, #page, 2 do
        channels[#channels + 1] = owner .. ':' .. page[i]
      end
      counts = redis.call('PUBSUB', 'NUMSUB', unpack(channels))
    end
    local gone, stopped = {}, false
    for i = 1, #page, 2 do
      if counts and tonumber(counts[i + 1]) == 0 then
        gone[#gone + 1] = page[i]
      elseif not stopped then
        local verdict = visit(page[i], tonumber(page[i + 1]))
        if verdict == 'take' then
          gone[#gone + 1] = page[i]
        elseif verdict == 'stop' then
          stopped = true
        else
          offset = offset + 1
        end
      end
    end
    if #gone > 0 then
      redis.call('ZREM', queue, unpack(gone))
    end
    if stopped then
      return
    end
    size = math.min(size * 4, 128)
  end
end

local function tellToLook(id, millis)
  redis.call('PUBLISH', owner .. ':' .. id, 'look@@' .. string.format('%.0f', millis))
end

local function tellFirst(millis)
  walk(function(id, score)
    if isOurTicket(score) then
      tellToLook(id, millis)
      return 'stop'
    end
  end)
end

local function layerOf(id)
  return string.match(id, '^%d+%-(%w+):') or id
end

-- Waiters of one layer fall silent together, so the one that is to look is of another layer where one is near
local function handOver(from, confirm, caller, ticket, unfair)
  local granted, behind
  local passed = 0
  walk(function(id, score)
    if granted then
      if isOurTicket(score) then
        passed = passed + 1
        local elsewhere = layerOf(id) ~= layerOf(granted)
        behind = elsewhere and id or behind or id
        if elsewhere or passed == 8 then
          return 'stop'
        end
      end
      return 'pass'
    end
    if id == caller or (ticket and ticket < score) then
      return 'stop'
    end
    granted = id
    redis.call('PUBLISH', owner .. ':' .. id, 'released@@' .. from)
    if not isOurTicket(score) then
      redis.call('SET', reserved, id, 'PX', confirm)
    elseif unfair then
      return 'pass'
    else
      mint()
      redis.call('SET', owner, id, 'PX', confirm)
    end
    return 'take'
  end)
  if behind then
    tellToLook(behind, tonumber(confirm))
  end
  return granted
end
`

export const ownership = /* lua */ `
local function ownership()
  local current = redis.call('GET', owner)
  if not current then
    return '@@'
  end
  return current .. '@@' .. string.format('%.0f', redis.call('PTTL', owner))
end
`
