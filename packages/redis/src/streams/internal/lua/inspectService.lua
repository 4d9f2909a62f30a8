--- Counts the entries, dead letters, consumers and members of a service.
---
--- KEYS[1] lbs
--- KEYS[2] dead     dead letters of the service
--- KEYS[3] members
--- ARGV[1] group
--- Reply: { announced, pending, longest idle ms, dead letters, { { consumer, pending, idle ms }, ... }, members }.

local lbs, dead, members, group = KEYS[1], KEYS[2], KEYS[3], ARGV[1]

--- @include include/groupInfo.lua
--- @include include/liveMembers.lua

local consumers, oldest, count = {}, 0, 0
if lastDelivered() then
  for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', lbs, group)) do
    consumers[#consumers + 1] = { field(info, 'name'), field(info, 'pending'), field(info, 'idle') }
  end
  local from = '-'
  repeat
    local page = redis.call('XPENDING', lbs, group, from, '+', 1000)
    for _, row in ipairs(page) do
      oldest = math.max(oldest, row[3])
    end
    count = count + #page
    from = #page == 1000 and '(' .. page[#page][1]
  until not from
end
return { redis.call('XLEN', lbs), count, oldest, redis.call('XLEN', dead), consumers, living() }
