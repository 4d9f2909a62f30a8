--- Does two plain operations without the functions of the general case, whose definitions cost more than they do.
---
--- - A plain try of a mutex that nobody owns or waits for.
--- - A plain release: nobody waits, or the first waiter is fresh, alive and of ours.
---
--- Leaves `reply` unset, and everything as it was, where there is more to it.
--- Needs owner, queue, fence, reserved, skipDead, plainLease, plainConfirm, code, at.
--- Sets reply.
--- @include fence.lua
--- @include contenderIds.lua

local id = ARGV[at]
local heir, inbox
if code == 't' then
  if redis.call('EXISTS', owner, queue, reserved) == 0 then
    heir = id
  end
elseif code == 'r' and redis.pcall('GET', owner) == id then
  local head = redis.pcall('ZRANGE', queue, 0, 0, 'WITHSCORES')
  local first = head[1]
  if first and skipDead then
    inbox = inboxOf(first)
    local age = micros() - math.floor(head[2] * 1000000 + 0.5)
    if inbox and age >= 0 and age <= plainConfirm * 1000 and redis.call('PUBSUB', 'NUMSUB', inbox)[2] > 0 then
      heir = first
    end
  elseif not first and not head.err then
    redis.call('DEL', owner)
    reply = '@@'
  end
end

-- A fence of another type fails this operation alone
local isMinted, token = pcall(heir and mint or error)
if isMinted then
  redis.call('SET', owner, heir, 'PX', plainLease)
  redis.call('PUBLISH', owner, 'acquired@@' .. heir)
  reply = token
  if inbox then
    local grant = '@@released@@' .. id .. '@@' .. token .. '@@' .. string.format('%.0f', micros()) .. '@@' .. plainLease
    redis.call('PUBLISH', inbox, heir .. grant)
    redis.call('DEL', reserved)
    redis.call('ZREM', queue, heir)
    reply = heir .. '@@' .. plainLease
  end
end
