--- Detects a data stream that was deleted and written again with smaller ids.
--- @include announcement.lua
--- @include compareIds.lua

-- Returns whether the checkpoint is beyond the last message. If so, it belongs to an earlier data stream with the same
-- name
local function isRewritten(stream, committed)
  local newest = lastMessage(stream)
  return newest ~= '0-0' and compareIds(newest, committed) < 0
end
