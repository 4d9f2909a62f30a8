--- Does three plain operations without the functions of the general case, whose definitions cost more than they do.
---
--- - A plain try of a mutex that nobody owns or waits for.
--- - A plain release: nobody waits, or the first waiter is alive and of ours. So is the second, if there is one, and of
---   another layer.
--- - A confirmation.
---
--- Leaves `reply` unset, and everything as it was, where there is more to it.
--- Needs owner, queue, fence, reserved, skipDead, plainLease, plainConfirm, code, at.
--- Sets reply.
--- @include clock.lua
--- @include retention.lua
--- @include stockSimba.lua

local id = ARGV[at]
local heir, millis, inbox, behind, behindInbox
if code == 't' then
  if redis.call('EXISTS', owner, queue, reserved) == 0 then
    heir, millis = id, plainLease
  end
elseif code == 'r' and redis.pcall('GET', owner) == id then
  local head = redis.pcall('ZRANGE', queue, 0, 1)
  local first = head[1]
  if first and skipDead then
    inbox, behind = inboxOf(first), head[2]
    behindInbox = behind and inboxOf(behind)
    if inbox and (not behind or behindInbox and behindInbox ~= inbox) then
      local counts = redis.call('PUBSUB', 'NUMSUB', inbox, behindInbox or inbox)
      if counts[2] > 0 and counts[4] > 0 then
        heir, millis = first, plainConfirm
      end
    end
  elseif not first and not head.err then
    redis.call('DEL', owner)
    reply = '@@'
  end
elseif code == 'c' and ARGV[at + 3] == '0' and redis.pcall('GET', owner) == id then
  local token, text = ARGV[at + 1], redis.pcall('GET', fence)
  if type(text) == 'string' and string.match(text, '^(%d+)/?%d*$') == token then
    redis.call('PEXPIRE', owner, ARGV[at + 2])
    reply = token
  end
end

if heir then
  local token = string.format('%.0f', micros())
  local last = redis.pcall('SET', fence, token, 'PX', fenceMillis, 'GET')
  local number = not last and 0 or tonumber(last)
  if number and number < micros() then
    redis.call('SET', owner, heir, 'PX', millis)
    redis.call('PUBLISH', owner, 'acquired@@' .. heir)
    reply = token
    if inbox then
      local grant = '@@released@@' .. id .. '@@' .. token .. '@@' .. token .. '@@' .. millis
      redis.call('PUBLISH', inbox, heir .. grant)
      redis.call('DEL', reserved)
      redis.call('ZREM', queue, heir)
      if behind then
        redis.call('PUBLISH', behindInbox, behind .. '@@look@@' .. millis)
      end
      reply = heir .. '@@' .. millis
    end
  elseif type(last) == 'string' then
    -- Ahead of the clock, reserved or no fence at all
    redis.call('SET', fence, last, 'PX', fenceMillis)
  end
end
