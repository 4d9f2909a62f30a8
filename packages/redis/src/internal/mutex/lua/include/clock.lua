--- The server's time, the same for the whole call.

local now
local function micros()
  if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  return now
end
