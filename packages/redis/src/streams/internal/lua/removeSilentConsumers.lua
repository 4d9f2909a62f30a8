--- Removes silent consumers. Keeps those with pending entries, because Redis would remove these entries too.
---
--- If there are any entries, keeps the `announced` and `failures` tables for another 7 days.
---
--- KEYS[1] input
--- KEYS[2] announced
--- KEYS[3] failures
--- ARGV[1] group
--- ARGV[2] idle: ms
--- Reply: Count. The number of removed consumers.

local input, announced, failures = KEYS[1], KEYS[2], KEYS[3]
local group, idle = ARGV[1], tonumber(ARGV[2])

--- @include include/groupInfo.lua
--- @include include/groupMark.lua
--- @include include/retention.lua

if redis.call('XLEN', input) > 0 then
  redis.call('PEXPIRE', announced, keepMillis)
  redis.call('PEXPIRE', failures, keepMillis)
end
if not lastDelivered(input, group) then
  return '0'
end
local removed = 0
for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', input, group)) do
  local name = field(info, 'name')
  if field(info, 'pending') == 0 and field(info, 'idle') >= idle and not markOf(name) then
    redis.call('XGROUP', 'DELCONSUMER', input, group, name)
    removed = removed + 1
  end
end
return string.format('%.0f', removed)
