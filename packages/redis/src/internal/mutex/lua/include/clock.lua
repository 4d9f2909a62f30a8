--- The time of the server, the same for the whole call.

local now
local function micros()
  if not now then
    local time = redis.call('TIME')
    now = tonumber(time[1]) * 1000000 + tonumber(time[2])
  end
  return now
end

-- Never a whole second, which is a Simba ticket
local function ticketAt(at)
  return string.format('%.6f', (at % 1000000 == 0 and at + 1 or at) / 1000000)
end
