--- Lists the hand-overs to a member that may be unconfirmed.
---
--- KEYS[1] given
--- ARGV[1] receiver  its consumer
--- ARGV[2] session   of the receiver
--- Reply: session@@epoch@@token@@entry@@consumer@@stream of each.

local given, receiver, session = KEYS[1], ARGV[1], ARGV[2]

--- @include include/clock.lua

local found = {}
local prefix, middle = session .. '@@', '@@' .. receiver .. '@@'
for _, handOver in ipairs(redis.call('ZRANGEBYSCORE', given, string.format('%.0f', now), '+inf')) do
  if string.sub(handOver, 1, #prefix) == prefix and string.find(handOver, middle, 1, true) then
    found[#found + 1] = handOver
  end
end
return found
