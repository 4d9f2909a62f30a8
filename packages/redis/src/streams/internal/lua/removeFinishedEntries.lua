--- Deletes one page of entries that were delivered to the group and are no longer pending.
---
--- Does nothing if there is another group. If another program created the group, earlier entries may never have been
--- delivered to it. In that case, only entries delivered after the first call are deleted.
---
--- KEYS[1] input
--- ARGV[1] group
--- ARGV[2] after  the entry to begin after, or ''
--- ARGV[3] count: number  entries per page
--- Reply: { next: text, Count }. Where to continue, '' at the end, and the number of deleted entries.

local input = KEYS[1]
local group, after, count = ARGV[1], ARGV[2], tonumber(ARGV[3])

--- @include include/compareIds.lua
--- @include include/groupInfo.lua
--- @include include/groupMark.lua

local last, groups = lastDelivered(input, group)
if not last or groups > 1 then
  return { '', '0' }
end
local from = readMark(input, group)
if not from then
  from = last
  writeMark(input, group, from)
end
if after ~= '' and compareIds(after, from) > 0 then
  from = after
end
local page = redis.call('XRANGE', input, '(' .. from, last, 'COUNT', count)
if #page == 0 then
  return { '', '0' }
end
local isPending, first, deliveries = {}, page[1][1], nil
repeat
  -- XPENDING may list more entries than the page contains, because it includes entries that were deleted while pending
  deliveries = redis.call('XPENDING', input, group, first, page[#page][1], count)
  for _, delivery in ipairs(deliveries) do
    isPending[delivery[1]] = true
    first = '(' .. delivery[1]
  end
until #deliveries < count
local removed = 0
for _, entry in ipairs(page) do
  if not isPending[entry[1]] then
    removed = removed + redis.call('XDEL', input, entry[1])
  end
end
return { #page == count and page[#page][1] or '', string.format('%.0f', removed) }
