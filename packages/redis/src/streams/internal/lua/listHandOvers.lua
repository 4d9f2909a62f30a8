--- Lists the messages of hand-overs to a member that may be unconfirmed.
---
--- KEYS[1] given
--- ARGV[1] receiver  its consumer
--- ARGV[2] session   of the receiver
--- Reply: the messages.

local found = {}
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local prefix, middle = 'given@@' .. ARGV[2] .. '@@', '@@' .. ARGV[1] .. '@@'
for _, message in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], string.format('%.0f', now), '+inf')) do
  if string.sub(message, 1, #prefix) == prefix and string.find(message, middle, 1, true) then
    found[#found + 1] = message
  end
end
return found
