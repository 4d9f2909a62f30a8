--- Makes the group of a service. It begins at the first entry.
---
--- KEYS[1] input
--- KEYS[2] start  the entry after which the group is known to have been given everything
--- ARGV[1] group
--- Reply: '1' if it was made, '0' if it was there.

local input, start, group = KEYS[1], KEYS[2], ARGV[1]

--- @include include/retention.lua

local reply = redis.pcall('XGROUP', 'CREATE', input, group, '0', 'MKSTREAM')
if not reply.err then
  redis.call('SET', start, '0-0', 'PX', keepMillis)
  return '1'
elseif string.find(reply.err, 'BUSYGROUP', 1, true) then
  return '0'
end
return reply
