--- Counts a data stream's messages after one id and up to another.
---
--- KEYS[1] stream
--- ARGV[1] after
--- ARGV[2] last  the last message to count, or '' for all
--- ARGV[3] most: number  maximum number of messages to count one by one
--- Reply: { } | { length: Count, last: EntryId, first: '' | EntryId, added: '' | Count, lastDeleted: '' | EntryId,
---   count: Count, more: '' | EntryId }. As in `readExtents`, then the count and the message
---   after which to continue.

local stream, after, last, most = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])

--- @include include/compareIds.lua
--- @include include/extent.lua

local extent = extentOf(stream)
if extent[1] == 'error' then
  return { err = extent[2] }
elseif #extent == 0 then
  return {}
end
local length, final, first = tonumber(extent[1]), extent[2], extent[3]

-- Returns the count if the extent is enough to compute it; nil if the messages must be read
local function known()
  if last == '' or compareIds(last, final) > 0 then
    last = final
  end
  if first == '' or compareIds(after, last) >= 0 or compareIds(last, first) < 0 then
    return 0
  elseif last == final and compareIds(after, first) <= 0 then
    return after == first and length - 1 or length
  end
end

local count, more = known(), ''
if not count then
  count = 0
  repeat
    local found = redis.call('XRANGE', stream, '(' .. after, last, 'COUNT', '100')
    count = count + #found
    after = #found == 100 and found[100][1] or ''
  until after == '' or count >= most
  more = after
end
extent[6], extent[7] = string.format('%.0f', count), more
return extent
