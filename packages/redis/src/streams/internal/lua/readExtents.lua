--- Reads how far data streams reach.
---
--- KEYS[n] stream
--- Reply: each { } | { length: Count, last: EntryId, first: '' | EntryId, added: '' | Count,
---   lastDeleted: '' | EntryId }. Nothing without such a stream, no first id without messages, and the
---   last two are '' before Redis 7.0.

--- @include include/infoField.lua

local function extentOf(stream)
  local info = redis.pcall('XINFO', 'STREAM', stream)
  if info.err then
    return string.find(info.err, 'no such key', 1, true) and {} or { 'error', info.err }
  end
  local first, added = field(info, 'first-entry'), field(info, 'entries-added')
  return {
    string.format('%.0f', field(info, 'length')),
    field(info, 'last-generated-id'),
    first and first[1] or '',
    added and string.format('%.0f', added) or '',
    field(info, 'max-deleted-entry-id') or ''
  }
end

local replies = {}
for i, stream in ipairs(KEYS) do
  replies[i] = extentOf(stream)
end
return replies
