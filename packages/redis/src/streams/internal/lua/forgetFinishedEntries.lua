--- Removes finished entries from the `failures` and `announced` tables, one page per call.
---
--- A finished entry no longer exists. Other programs' consumers finish entries without updating these tables.
---
--- KEYS[1] input
--- KEYS[2] announced
--- KEYS[3] failures
--- ARGV[1] failuresCursor  '0' to begin, '' when the table is finished
--- ARGV[2] announcedCursor  '0' to begin, '' when the table is finished
--- ARGV[3] count: number  fields per page
--- Reply: { failuresCursor: text, announcedCursor: text }. Where to continue, '' at the end.

local input, announced, failures = KEYS[1], KEYS[2], KEYS[3]
local failuresCursor, announcedCursor, count = ARGV[1], ARGV[2], ARGV[3]

local function scan(key, cursor, entryOf)
  if cursor == '' then
    return ''
  end
  local reply = redis.call('HSCAN', key, cursor, 'COUNT', count)
  for i = 1, #reply[2], 2 do
    local entry = entryOf(reply[2][i], reply[2][i + 1])
    if entry and #redis.call('XRANGE', input, entry, entry) == 0 then
      redis.call('HDEL', key, reply[2][i])
    end
  end
  return reply[1] == '0' and '' or reply[1]
end

local function id(text)
  return string.match(text, '^%d+%-%d+')
end

return {
  scan(failures, failuresCursor, id),
  scan(announced, announcedCursor, function(_, entry) return id(entry) end)
}
