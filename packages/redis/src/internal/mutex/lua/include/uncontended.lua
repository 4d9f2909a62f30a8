--- A mutex that nobody else wants, and a confirmation: the same as in full, by the fewest commands.
---
--- Inline, because closures would cost more than these commands.
--- Needs owner, queue, fence, reserved, call, attempt, code, first, plainLease, fenceMillis.
--- Sets at, reply, stamp, isMine, head.

if code == 116 then
  at = first + 1
  local id = ARGV[first]
  local set = call('EXISTS', queue, reserved) == 0 and attempt('SET', owner, id, 'PX', plainLease, 'NX')
  if set and set.ok then
    if not stamp then
      local time = call('TIME')
      stamp = time[1] .. string.sub('00000' .. time[2], -6)
    end
    local last = attempt('SET', fence, stamp, 'PX', fenceMillis, 'GET')
    local number = not last and 0 or tonumber(last)
    if number and number < tonumber(stamp) then
      call('PUBLISH', owner, 'acquired@@' .. id)
      reply = stamp
    else
      -- Ahead of the clock, reserved or no fence at all: as if nothing had been done
      call('DEL', owner)
      if type(last) == 'string' then
        call('SET', fence, last, 'PX', fenceMillis)
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
