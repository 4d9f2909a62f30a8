--- Moves a dead message to the end of its data stream, byte by byte.
---
--- KEYS[1] stream
--- KEYS[2] deadMessages
--- KEYS[3] deadIds  the letter of each message
--- ARGV[1] letter  its id
--- Reply: '0' | '1' | 'packed'. '0' if there is no such letter, 'packed' if it has more fields than a call of Lua can
---   have.

local stream, deadMessages, deadIds = KEYS[1], KEYS[2], KEYS[3]
local letter = ARGV[1]

local found = redis.call('XRANGE', deadMessages, letter, letter)[1]
if not found then
  return '0'
end
local fields = found[2]
-- The last three fields are the reason, the id and the token
if #fields == 8 and fields[1] == 'simba-fields' then
  return 'packed'
end
redis.call('XADD', stream, '*', unpack(fields, 1, #fields - 6))
redis.call('XDEL', deadMessages, letter)
redis.call('HDEL', deadIds, fields[#fields - 2])
return '1'
