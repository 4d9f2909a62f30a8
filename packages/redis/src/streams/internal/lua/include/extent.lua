--- Reads a data stream's extent: its length, and its first and last ids.
--- @include infoField.lua

-- Returns { length, last id, first id, messages ever added, largest id deleted by XDEL }, or { } if the data stream
-- does not exist, or { 'error', message }. The first id is '' if there are no messages. Before Redis 7.0, the last two
-- fields are ''
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
