--- Lists the messages of hand-overs to a member that may be unconfirmed.
---
--- KEYS[1] given
--- ARGV[1] receiver  its consumer
--- ARGV[2] session   of the receiver
--- Reply: the messages.

local given, receiver, session = KEYS[1], ARGV[1], ARGV[2]

--- @include include/clock.lua

local found = {}
local prefix, middle = 'given@@' .. session .. '@@', '@@' .. receiver .. '@@'
for _, message in ipairs(redis.call('ZRANGEBYSCORE', given, string.format('%.0f', now), '+inf')) do
  if string.sub(message, 1, #prefix) == prefix and string.find(message, middle, 1, true) then
    found[#found + 1] = message
  end
end
return found
