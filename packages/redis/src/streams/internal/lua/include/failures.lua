--- Reads and writes an entry's consecutive failures: `<count>|<ms of the first>|<ms of the last>`.
---
--- Progress resets the count. If `pause` is not 0, that much time without a failure resets it too.
--- @include clock.lua

-- Returns the count, and the time since the first failure in ms. The time is 0 if the clock was set back in the
-- meantime
local function failuresOf(failures, entry, pause)
  local count, first, last = string.match(redis.call('HGET', failures, entry) or '', '^(%d+)|(%d+)|(%d+)$')
  pause = tonumber(pause)
  if not count or pause > 0 and now - last >= pause then
    return 0, 0
  end
  return tonumber(count), math.max(0, now - first)
end

local function setFailures(failures, entry, count, age)
  redis.call('HSET', failures, entry, string.format('%.0f|%.0f|%.0f', count, now - age, now))
end
