--- Removes messages up to a data stream's checkpoint, unless another program's consumer group still needs them.
---
--- Removes whole nodes of the stream first, and up to about 10,000 messages per call. Later calls remove the rest.
---
--- KEYS[1] stream
--- KEYS[2] checkpoint
--- ARGV[1] keep: ms  minimum age of removed messages
--- Reply: Count. The number of removed messages; 0 when there is nothing left to remove.

local stream, checkpoint, keep = KEYS[1], KEYS[2], ARGV[1]

--- @include include/checkpoint.lua
--- @include include/clock.lua
--- @include include/compareIds.lua
--- @include include/infoField.lua

-- The first message to keep
local bound

local function stays(id)
  if id and (not bound or compareIds(id, bound) < 0) then
    bound = id
  end
end

local function staysAfter(id)
  local most = '18446744073709551615-18446744073709551615'
  local found = id ~= most and redis.call('XRANGE', stream, '(' .. id, '+', 'COUNT', '1')[1]
  stays(found and found[1])
end

local committed, _, offset = checkpointOf(checkpoint)
if not committed or redis.call('EXISTS', stream) == 0 then
  return '0'
end
-- If the data stream was deleted and written again, none of its messages have been processed
local info = redis.call('XINFO', 'STREAM', stream)
local added, known = field(info, 'entries-added'), tonumber(offset)
if compareIds(field(info, 'last-generated-id'), committed) < 0 or added and known and added < known then
  return '0'
end
staysAfter(committed)
for _, info in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
  staysAfter(field(info, 'last-delivered-id'))
  stays(redis.call('XPENDING', stream, field(info, 'name'))[2])
end
if keep ~= '0' then
  stays(string.format('%.0f-0', math.max(0, now - keep)))
end

local removed
if bound then
  removed = redis.call('XTRIM', stream, 'MINID', '~', bound)
  if removed == 0 then
    removed = redis.call('XTRIM', stream, 'MINID', bound)
  end
else
  removed = redis.call('XTRIM', stream, 'MAXLEN', '~', '0')
  if removed == 0 then
    removed = redis.call('XTRIM', stream, 'MAXLEN', '0')
  end
end
return string.format('%.0f', removed)
