--- Reads how far the group of the service is, by XINFO.
--- Needs input, group.
--- @include infoField.lua

local function lastDelivered()
  local groups = redis.pcall('XINFO', 'GROUPS', input)
  if groups.err then
    return nil, 0
  end
  for _, info in ipairs(groups) do
    if field(info, 'name') == group then
      return field(info, 'last-delivered-id'), #groups
    end
  end
  return nil, #groups
end
