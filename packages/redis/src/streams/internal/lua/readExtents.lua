--- Reads each data stream's extent: its length, and its first and last ids.
---
--- KEYS[n] stream
--- Reply: each { } | { length: Count, last: EntryId, first: '' | EntryId, added: '' | Count,
---   lastDeleted: '' | EntryId }. An empty list if the stream does not exist. `first` is '' if there are no messages,
---   and the last two are '' before Redis 7.0.

--- @include include/extent.lua

local replies = {}
for i, stream in ipairs(KEYS) do
  replies[i] = extentOf(stream)
end
return replies
