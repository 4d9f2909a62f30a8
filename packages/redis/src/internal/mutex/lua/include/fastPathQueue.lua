--- Queues a plain acquire by the fewest commands, where the owner and the first waiters are of ours.
---
--- Leaves `reply` unset, and everything as it was but for that place, where there is more to it.
--- Needs owner, queue, fence, plainLease, plainConfirm, code, at.
--- Sets reply.
--- @include clock.lua
--- @include contenderIds.lua

if code == 'w' then
  local id = ARGV[at]
  local current, minted = redis.pcall('GET', owner), redis.pcall('GET', fence)
  local areOurs = type(current) == 'string' and current ~= id and inboxOf(current) and type(minted) ~= 'table'
  local last = areOurs and redis.pcall('ZRANGE', queue, -1, -1, 'WITHSCORES')
  local isLast = last and not last.err and (not last[2] or math.floor(last[2] * 1000000 + 0.5) < micros())
  local ticket = ticketAt(micros())
  -- Where the memory is full, this alone is refused, and not the whole call
  if isLast and redis.pcall('ZADD', queue, 'NX', ticket, id) == 1 then
    for _, waiter in ipairs(redis.call('ZRANGE', queue, 0, 15)) do
      areOurs = areOurs and inboxOf(waiter)
    end
    if areOurs then
      local left = redis.call('PTTL', owner)
      local keep = math.max(left, 0) + tonumber(plainLease) + tonumber(plainConfirm)
      if redis.call('PTTL', queue) < keep then
        redis.call('PEXPIRE', queue, string.format('%.0f', keep))
      end
      local ahead = redis.call('ZRANK', queue, id)
      local token = string.match(minted or '', '^%d+') or '0'
      local ownership = current .. '@@' .. string.format('%.0f', left)
      reply = { ownership, ticket, tostring(ahead), '0', string.format('%.0f', micros()), token }
    end
  end
end
