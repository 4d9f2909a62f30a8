--- Lists the possibly unconfirmed hand-overs to a member.
---
--- KEYS[1] handOvers
--- ARGV[1] session  the receiver's session
--- Reply: HandOver[].

local handOvers, session = KEYS[1], ARGV[1]

--- @include include/clock.lua

local found, prefix = {}, session .. '@@'
for _, handOver in ipairs(redis.call('ZRANGEBYSCORE', handOvers, string.format('%.0f', now), '+inf')) do
  if string.sub(handOver, 1, #prefix) == prefix then
    found[#found + 1] = handOver
  end
end
return found
