--- Moves a dead message to the end of its data stream, unchanged.
---
--- If a message has more fields than a Lua call can take, the caller must add it and then call this script again.
--- Meanwhile, for at most a minute, no other caller may add it.
---
--- KEYS[1] stream
--- KEYS[2] deadMessages
--- KEYS[3] deadIds  the id of each message's dead letter
--- ARGV[1] letter  the dead letter's id
--- ARGV[2] added: '1' | ''  whether the caller has added the message
--- Reply: '0' | '1' | 'packed' | 'claimed'. '0' if there is no such letter, '1' if the message was moved,
---   'packed' if the caller must add it, 'claimed' if another caller is about to.

local stream, deadMessages, deadIds = KEYS[1], KEYS[2], KEYS[3]
local letter, added = ARGV[1], ARGV[2]

--- @include include/addDeadLetter.lua
--- @include include/clock.lua

local claimMillis = 60000

local found = redis.call('XRANGE', deadMessages, letter, letter)[1]
if not found then
  return '0'
end
local fields, claim = found[2], 'redrive:' .. letter
-- The last three fields are the reason, the id and the token
local id = fields[#fields - 2]
local isPacked = #fields == 8 and fields[1] == 'simba-fields'
local before, since = unpack(redis.call('HMGET', deadIds, id, claim))
if isPacked and added ~= '1' then
  -- A claim far ahead of the clock has ended too, because the clock must have been set back
  if since and math.abs(now - since) < claimMillis then
    return 'claimed'
  end
  redis.call('HSET', deadIds, claim, string.format('%.0f', now))
  redis.call('PEXPIRE', deadIds, deadMillis)
  return 'packed'
end
if not isPacked then
  redis.call('XADD', stream, '*', unpack(fields, 1, #fields - 6))
end
redis.call('XDEL', deadMessages, letter)
redis.call('HDEL', deadIds, claim)
-- A data stream that was deleted and written again may reuse an id
if before == letter then
  redis.call('HDEL', deadIds, id)
end
return '1'
