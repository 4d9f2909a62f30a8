--- Reads and writes a data stream's checkpoint: `<id>`, `<id>@@<entry>` or `<id>@@<entry>@@<offset>`.
---
--- If the data stream ended at the checkpoint, `entry` is the entry under which it ended, otherwise ''. The offset is
--- the number of messages added up to the checkpoint, or ''.
--- @include retention.lua

-- Returns the id, the entry and the offset; nil without a checkpoint
local function checkpointOf(checkpoint)
  return string.match(redis.call('GET', checkpoint) or '', '^([^@]+)@?@?([^@]*)@?@?(%d*)$')
end

-- Never shortens the remaining time. An invalid offset counts as unknown, because it could not be decoded later
local function writeCheckpoint(checkpoint, id, endedBy, offset, millis)
  offset = #offset < 16 and string.match(offset, '^%d+$') or ''
  local text = id
  if endedBy ~= '' or offset ~= '' then
    text = text .. '@@' .. endedBy
  end
  if offset ~= '' then
    text = text .. '@@' .. offset
  end
  local left = math.max(redis.call('PTTL', checkpoint), tonumber(millis))
  redis.call('SET', checkpoint, text, 'PX', string.format('%.0f', left))
end
