--- Reads whether messages after an id were deleted.
---
--- KEYS[1] stream
--- ARGV[1] after
--- Reply: '', or the first message that is left, or the last one that was deleted if none is left.

local stream, after = KEYS[1], ARGV[1]

--- @include include/infoField.lua
--- @include include/compareIds.lua

local info = redis.pcall('XINFO', 'STREAM', stream)
if info.err then
  return ''
end
local first = field(info, 'first-entry')
local until_ = first and first[1] or field(info, 'last-generated-id')
if compareIds(until_, after) <= 0 then
  return ''
end
if first then
  -- From Redis 7.0. Nothing was deleted: the data stream was made anew since
  local added = field(info, 'entries-added')
  if not added or added == field(info, 'length') then
    return ''
  end
  -- Deleted by its id, after it was processed: nothing tells of trimming
  if after ~= '0-0' and field(info, 'max-deleted-entry-id') == after then
    return ''
  end
end
return until_
