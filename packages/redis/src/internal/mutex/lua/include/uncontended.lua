--- Does what nobody else wants: a plain try, a plain release and a confirmation, by the fewest commands.
---
--- Leaves `reply` unset, and everything as it was, where there is more to it. Functions are not defined yet: to define
--- them costs more than these commands.
--- Needs owner, queue, fence, reserved, plainLease, code, at.
--- Sets reply, stamp.
--- @include retention.lua

if code == 't' then
  local id = ARGV[at]
  local set = redis.call('EXISTS', queue, reserved) == 0 and redis.pcall('SET', owner, id, 'PX', plainLease, 'NX')
  if set and set.ok then
    if not stamp then
      local time = redis.call('TIME')
      stamp = time[1] .. string.sub('00000' .. time[2], -6)
    end
    local last = redis.pcall('SET', fence, stamp, 'PX', fenceMillis, 'GET')
    local number = not last and 0 or tonumber(last)
    if number and number < tonumber(stamp) then
      redis.call('PUBLISH', owner, 'acquired@@' .. id)
      reply = stamp
    else
      -- Ahead of the clock, reserved or no fence at all
      redis.call('DEL', owner)
      if type(last) == 'string' then
        redis.call('SET', fence, last, 'PX', fenceMillis)
      end
    end
  end
elseif code == 'r' then
  if redis.call('EXISTS', queue) == 0 and redis.pcall('GET', owner) == ARGV[at] then
    redis.call('DEL', owner)
    reply = '@@'
  end
elseif code == 'c' and ARGV[at + 3] == '0' then
  local token = ARGV[at + 1]
  if redis.pcall('GET', owner) == ARGV[at] then
    local text = redis.pcall('GET', fence)
    if type(text) == 'string' and string.match(text, '^(%d+)/?%d*$') == token then
      redis.call('PEXPIRE', owner, ARGV[at + 2])
      reply = token
    end
  end
end
