--- Reads the position of the service's group, with XINFO.
--- @include infoField.lua

local function lastDelivered(input, group)
  -- Without the stream, this is an error reply, which has no items
  local groups = redis.pcall('XINFO', 'GROUPS', input)
  for _, info in ipairs(groups) do
    if field(info, 'name') == group then
      return field(info, 'last-delivered-id'), #groups
    end
  end
  return nil, #groups
end
