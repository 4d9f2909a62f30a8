--- Counts the messages after each data stream's checkpoint, and reads the first one's age.
---
--- KEYS[2n-1] stream
--- KEYS[2n] checkpoint
--- ARGV[1] most: number  maximum number of messages to count one by one
--- Reply: each { messages: Count, isMore: '' | '1', age: '' | Count, first: '' | EntryId }. `isMore` is '1' if
---   there may be more. `age` is the first message's age in ms, and `first` is its id; both are '' if there is none.

local most = ARGV[1]

--- @include include/checkpoint.lua
--- @include include/clock.lua
--- @include include/compareIds.lua
--- @include include/infoField.lua

local none = { '0', '', '', '' }

local function lagOf(stream, checkpoint)
  local id, _, offset = checkpointOf(checkpoint)
  id = id or '0-0'
  local info = redis.pcall('XINFO', 'STREAM', stream)
  if info.err then
    if string.find(info.err, 'no such key', 1, true) then
      return none
    end
    error(info.err, 0)
  end
  local order = compareIds(field(info, 'last-generated-id'), id)
  if order == 0 then
    return none
  elseif order < 0 then
    -- If the data stream was deleted and written again, count all of its messages
    id, offset = '0-0', ''
  end
  local first = redis.call('XRANGE', stream, '(' .. id, '+', 'COUNT', '1')[1]
  if not first then
    return none
  end
  local length, added = field(info, 'length'), field(info, 'entries-added')
  local count, isMore = length, ''
  if field(info, 'first-entry')[1] ~= first[1] then
    if added and tonumber(offset) then
      count = math.max(1, math.min(length, added - offset))
    else
      count = #redis.call('XRANGE', stream, '(' .. id, '+', 'COUNT', most)
      isMore = count == tonumber(most) and '1' or ''
    end
  end
  local age = math.max(0, now - tonumber(string.match(first[1], '^%d+')))
  return { string.format('%.0f', count), isMore, string.format('%.0f', age), first[1] }
end

-- A malformed checkpoint or a key of the wrong type causes an error only for that data stream
local replies = {}
for i = 1, #KEYS, 2 do
  local done, reply = pcall(lagOf, KEYS[i], KEYS[i + 1])
  replies[#replies + 1] = done and reply or { 'error', reply }
end
return replies
