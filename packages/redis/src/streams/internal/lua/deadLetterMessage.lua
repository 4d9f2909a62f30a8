--- Dead-letters a message in a data stream, unless it is already a dead letter. Does not move the checkpoint.
---
--- The server copies the message unchanged. If the message was deleted from the data stream, `fields` are used instead.
---
--- KEYS[1] streamLease
--- KEYS[2] stream
--- KEYS[3] deadMessages
--- KEYS[4] deadIds  the id of each message's dead letter
--- ARGV[1] leaseValue  the stream lease's value
--- ARGV[2] id  the message's id
--- ARGV[3] reason
--- ARGV[4] token: number
--- ARGV[5..] fields  the message's fields
--- Reply: 'DeadLettered' | 'NotOwner'.

local streamLease, stream, deadMessages, deadIds = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local leaseValue, id, reason, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

--- @include include/addDeadLetter.lua
--- @include include/idProblem.lua

if redis.call('GET', streamLease) ~= leaseValue then
  return 'NotOwner'
end
if idProblem(id) then
  return { err = idProblem(id) }
end

local found = redis.call('XRANGE', stream, id, id)[1]
local fields = found and found[2] or {}
if not found then
  for i = 5, #ARGV do
    fields[#fields + 1] = ARGV[i]
  end
end
fields = packed(fields)

-- Compare the fields, because a data stream that was deleted and written again may reuse an id
local function isLetterOf(letter)
  if not letter or #letter[2] ~= #fields + 6 then
    return false
  end
  for i, text in ipairs(fields) do
    if letter[2][i] ~= text then
      return false
    end
  end
  return true
end

local before = redis.call('HGET', deadIds, id)
if before and isLetterOf(redis.call('XRANGE', deadMessages, before, before)[1]) then
  return 'DeadLettered'
end
-- Limit the table's size by dropping all records. A message that is processed again may then get a second letter
if redis.call('HLEN', deadIds) >= 20000 then
  redis.call('DEL', deadIds)
end
redis.call('HSET', deadIds, id, addDead(deadMessages, fields, reason, id, token))
redis.call('PEXPIRE', deadIds, deadMillis)
return 'DeadLettered'
