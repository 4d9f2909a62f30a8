--- Reads the server's time once per call, when it is first needed.

local now
local function micros()
  if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  return now
end
