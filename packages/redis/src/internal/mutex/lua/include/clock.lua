--- The time of the server, the same for the whole call.

local now
local function micros()
  if not now then
    local time = redis.call('TIME')
    now = tonumber(time[1]) * 1000000 + tonumber(time[2])
  end
  return now
end
