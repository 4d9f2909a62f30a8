--- Counts a service's entries and dead letters, and lists its consumers and members.
---
--- KEYS[1] input
--- KEYS[2] deadLetters
--- KEYS[3] members
--- ARGV[1] group
--- Reply: { announced: Natural, pending: Natural, oldest: Natural, deadLetters: Natural, { consumer: text, pending:
---   Natural, idle: Natural }[], Member[] }. Idle times are in ms; `oldest` is the longest idle time of any entry.

local input, deadLetters, members, group = KEYS[1], KEYS[2], KEYS[3], ARGV[1]

--- @include include/groupInfo.lua
--- @include include/groupMark.lua
--- @include include/liveMembers.lua

local consumers, oldest, count = {}, 0, 0
if lastDelivered(input, group) then
  for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', input, group)) do
    local name = field(info, 'name')
    if not markOf(name) then
      consumers[#consumers + 1] = { name, field(info, 'pending'), field(info, 'idle') }
    end
  end
  local from = '-'
  repeat
    local page = redis.call('XPENDING', input, group, from, '+', 1000)
    for _, delivery in ipairs(page) do
      oldest = math.max(oldest, delivery[3])
    end
    count = count + #page
    from = #page == 1000 and '(' .. page[#page][1]
  until not from
end
return { redis.call('XLEN', input), count, oldest, redis.call('XLEN', deadLetters), consumers, liveMembers(members) }
