/** The script of acquires and releases: the usual cases with the fewest commands, all others in full. */
import { clock, entering, fenceMillis, granting, kinds, minting, ownership, waiters } from "./lua.ts"
import { operations } from "./operations.ts"

/** Of a mutex that nobody else wants, and a confirmation. Closures would cost more than these commands. */
export const free = /* lua */ `
if code == 116 then
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
  at = first + 1
  isMine = attempt('GET', owner) == ARGV[first]
  head = isMine and attempt('ZRANGE', queue, 0, 1, 'WITHSCORES')
  if head and not head.err and not head[1] then
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
`

/** Of a mutex that only live ones of ours want, as far as this looks. Each gives up as if it had done nothing. */
const usual = /* lua */ `
-- To the first of two places of different layers
local function pass(id)
  local heir, behind = head[1], head[3]
  if not skipDead or not heir or heir == id or behind == id then
    return
  end
  local inbox = isOurTicket(tonumber(head[2])) and inboxOf(heir)
  local other = not behind and '' or isOurTicket(tonumber(head[4])) and inboxOf(behind)
  local counts = inbox and other and other ~= inbox and call('PUBSUB', 'NUMSUB', inbox, other)
  if not counts or tonumber(counts[2]) == 0 or (behind and tonumber(counts[4]) == 0) then
    return
  end
  local token = string.format('%.0f', micros())
  local last = attempt('SET', fence, token, 'PX', '${fenceMillis}', 'GET')
  local number = not last and 0 or tonumber(last)
  if not number or number >= micros() then
    if type(last) == 'string' then
      call('SET', fence, last, 'PX', '${fenceMillis}')
    end
    return
  end
  call('SET', owner, heir, 'PX', confirm0)
  call('ZREM', queue, heir, id)
  call('PUBLISH', inbox, heir .. '@@released@@' .. id)
  if behind then
    call('PUBLISH', other, behind .. '@@look@@' .. confirm0)
  end
  return heir .. '@@' .. confirm0
end

-- For the first time
local function queueUp(id, lease, confirm)
  local current = attempt('GET', owner)
  if type(current) ~= 'string' or current == id or not inboxOf(current) then
    return
  end
  local head, last = attempt('ZRANGE', queue, 0, 15, 'WITHSCORES'), nil
  for k = 2, #head, 2 do
    last = tonumber(head[k])
    if not isOurTicket(last) then
      return
    end
  end
  if #head == 0 and type(attempt('GET', fence)) == 'table' then
    return
  end
  local position = #head / 2
  if position == 16 then
    position, last = call('ZCARD', queue), tonumber(call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2])
  end
  local ticket = ticketAt(last and math.max(micros(), math.floor(last * 1000000 + 0.5) + 1) or micros())
  local added = attempt('ZADD', queue, 'NX', ticket, id)
  if added ~= 1 then
    return
  end
  local left = call('PTTL', owner)
  local keep = math.max(left, 0) + lease + confirm
  if call('PTTL', queue) < keep then
    call('PEXPIRE', queue, string.format('%.0f', keep))
  end
  return { current .. '@@' .. string.format('%.0f', left), ticket, string.format('%.0f', position), '0' }
end
`

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
local stamp, isMine, head
local try, perform

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
${free}
if not reply and not try then
${clock}${kinds}${usual}
try = function(code, first)
  if code == 114 then
    return isMine and pass(ARGV[first])
  elseif code == 97 and ARGV[first + 1] == 'wait' and ARGV[first + 4] == '' then
    return queueUp(ARGV[first], tonumber(ARGV[first + 2]), tonumber(ARGV[first + 3]))
  end
end

local made
perform = function(...)
if not made then
${minting}${granting}${waiters}${entering}${ownership}${operations}
made = function(code, first)
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
return made(...)
end
end

if not reply then
  local done
  done, reply = pcall(try, code, first)
  if done and not reply then
    done, reply = pcall(perform, code, first)
  end
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
