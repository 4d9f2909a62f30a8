--- Queues an acquire without a ticket by the fewest commands, where the owner and the first waiters are of ours.
---
--- Leaves `reply` unset, and everything as it was but for that place, where there is more to it.
--- Needs owner, queue, fence, code, at.
--- Sets reply.
--- @include clock.lua
--- @include stockSimba.lua

if code == 'a' and ARGV[at + 1] == 'wait' and ARGV[at + 4] == '' then
  local id, lease, confirm = ARGV[at], ARGV[at + 2], ARGV[at + 3]
  local current, last = redis.pcall('GET', owner), redis.pcall('GET', fence)
  local isUsual = type(current) == 'string' and current ~= id and inboxOf(current) and type(last) ~= 'table'
  local ticket = ticketAt(micros())
  if isUsual and redis.pcall('ZADD', queue, 'NX', ticket, id) == 1 then
    if redis.call('ZCOUNT', queue, ticket, '+inf') > 1 then
      -- The clock is behind, or stands still within this call
      redis.call('ZREM', queue, id)
      isUsual = false
    end
    for _, waiter in ipairs(redis.call('ZRANGE', queue, 0, 15)) do
      isUsual = isUsual and inboxOf(waiter)
    end
    if isUsual then
      local left = redis.call('PTTL', owner)
      local keep = math.max(left, 0) + tonumber(lease) + tonumber(confirm)
      if redis.call('PTTL', queue) < keep then
        redis.call('PEXPIRE', queue, string.format('%.0f', keep))
      end
      local ahead = redis.call('ZRANK', queue, id)
      local token = string.match(last or '', '^(%d+)/?%d*$') or '0'
      local ownership = current .. '@@' .. string.format('%.0f', left)
      reply = { ownership, ticket, tostring(ahead), '0', string.format('%.0f', micros()), token }
    end
  end
end
