--- Reads and writes a data stream's last announcement.
---
--- The `announced` hash has one field for each data stream: `<entry>@@<repetitions>@@<last>@@<payload>`. `last` is the
--- id of the data stream's last message at the latest repetition, and `payload` is the text announced then.
--- @include entryStates.lua
--- @include infoField.lua
--- @include retention.lua

local function announcementOf(announced, stream)
  local entry, repeats, last, payload = string.match(
    redis.call('HGET', announced, stream) or '', '^([^@]*)@@(%d+)@@([^@]*)@@(.*)$')
  return entry, tonumber(repeats), last, payload
end

local function note(announced, stream, entry, repeats, last, payload)
  redis.call('HSET', announced, stream, table.concat({ entry, string.format('%.0f', repeats), last, payload }, '@@'))
  redis.call('PEXPIRE', announced, keepMillis)
end

local function announce(input, announced, stream, payload, repeats, last)
  local entry = announceEntry(input, { 'lbs-input', payload })
  note(announced, stream, entry, repeats, last, payload)
  return entry
end

-- Keeps a later announcement for the same data stream
local function forgetAnnouncement(announced, stream, entry)
  if announcementOf(announced, stream) == entry then
    redis.call('HDEL', announced, stream)
  end
end

-- Returns the largest id that the data stream has ever had
local function lastMessage(key)
  local info = redis.pcall('XINFO', 'STREAM', key)
  return info.err and '0-0' or field(info, 'last-generated-id')
end
