/** Parts that the scripts share. Put together they are constant texts. */

/** How long a fence outlives its last use. Afterwards the server's clock, its seed, keeps it growing. */
export const fenceMillis = 7 * 24 * 60 * 60 * 1000

export const keys = /* lua */ `
local owner, queue, fence, reserved = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
`

/** One instant for the whole call. */
export const clock = /* lua */ `
local now
local function micros()
  if not now then
    local time = redis.call('TIME')
    now = tonumber(time[1]) * 1000000 + tonumber(time[2])
  end
  return now
end

-- Never a whole second, which is a stock ticket
local function ticketAt(at)
  return string.format('%.6f', (at % 1000000 == 0 and at + 1 or at) / 1000000)
end
`

/**
 * Each grant takes a token larger than all that were handed out, and not below the clock. The fence holds the token `T`, or
 * `T/b` where the `b` tokens after it are reserved for the same grant.
 */
export const minting = /* lua */ `
local function readFence(text)
  if text == nil then
    text = redis.call('GET', fence)
  end
  local token, spare = string.match(text or '', '^(%d+)/?(%d*)$')
  return token, tonumber(spare) or 0
end

local function writeFence(token, spare)
  redis.call('SET', fence, spare > 0 and token .. '/' .. string.format('%.0f', spare) or token, 'PX', '${fenceMillis}')
end

local function mint(spare, text)
  local last, reserve = readFence(text)
  local token = string.format('%.0f', math.max((tonumber(last) or 0) + reserve + 1, micros()))
  writeFence(token, spare or 0)
  return token
end
`

/** Stock tickets are whole seconds; ours never are. Stock ids lack the counter and the random part of ours. */
export const kinds = /* lua */ `
local function isOurTicket(score)
  return score % 1 ~= 0
end

-- The channel of its layer; nothing for a stock id
local function inboxOf(id)
  local layer = string.match(id, '^%d+%-(%w%w%w%w%w%w%w%w%w%w%w%w):')
  return layer and 'simba:inbox:' .. layer
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
        channels[#channels + 1] = inboxOf(page[i]) or owner .. ':' .. page[i]
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

local function tell(id, message)
  local inbox = inboxOf(id)
  if inbox then
    redis.call('PUBLISH', inbox, id .. '@@' .. message)
  else
    redis.call('PUBLISH', owner .. ':' .. id, message)
  end
end

local function tellToLook(id, millis)
  tell(id, 'look@@' .. string.format('%.0f', millis))
end

-- Where nobody can be seen to be dead, one of several is alive more likely than the first
local function tellFirst(millis)
  local told = 0
  walk(function(id, score)
    if isOurTicket(score) then
      tellToLook(id, millis)
      told = told + 1
      return (skipDead or told == 8) and 'stop' or 'pass'
    end
  end)
end

-- Waiters of one layer fall silent together, so the one that is to look is of another layer where one is near
local function handOver(from, confirm, caller, ticket, unfair)
  local granted, behind
  local passed = 0
  walk(function(id, score)
    if granted then
      if isOurTicket(score) then
        passed = passed + 1
        if not skipDead then
          tellToLook(id, tonumber(confirm))
          return passed == 8 and 'stop' or 'pass'
        end
        local elsewhere = inboxOf(id) ~= inboxOf(granted)
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
    tell(id, 'released@@' .. from)
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

/** A place in the queue: the ticket that it had, or one behind all that wait. */
export const entering = /* lua */ `
local function enter(id, ticket)
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
  local text = ticketAt(at)
  redis.call('ZADD', queue, text, id)
  return text
end

-- Every waiter touches the queue before it sleeps, for longer than it will sleep
local function keepQueue(lease, confirm)
  local keep = math.max(redis.call('PTTL', owner), 0) + tonumber(lease) + tonumber(confirm)
  if redis.call('PTTL', queue) < keep then
    redis.call('PEXPIRE', queue, string.format('%.0f', keep))
  end
end
`

/** The caller becomes the owner, or is it already and keeps its token. Tokens that it reserves are never given back. */
export const granting = /* lua */ `
local function take(id, lease, spare, isOwner)
  local token, had
  if isOwner then
    token, had = readFence()
  end
  if not token then
    token = mint(spare)
  elseif spare > had then
    writeFence(token, spare)
  end
  redis.call('SET', owner, id, 'PX', lease)
  redis.call('PUBLISH', owner, 'acquired@@' .. id)
  return token
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
