--- Creates a service's consumer group, which starts at the first entry.
---
--- Writes the group's mark, because the group will deliver every entry: see include/groupMark.lua.
---
--- KEYS[1] input
--- ARGV[1] group
--- Reply: Flag. '1' if it was created, '0' if it already existed.

local input, group = KEYS[1], ARGV[1]

--- @include include/groupMark.lua

local reply = redis.pcall('XGROUP', 'CREATE', input, group, '0', 'MKSTREAM')
if not reply.err then
  writeMark(input, group, '0-0')
  return '1'
elseif string.find(reply.err, 'BUSYGROUP', 1, true) then
  return '0'
end
return reply
