--- Reads the last delivered id of the service's group, with XINFO, and the number of groups.
--- @include infoField.lua

local function lastDelivered(input, group)
  -- If the stream does not exist, this is an error reply, which has no items
  local groups = redis.pcall('XINFO', 'GROUPS', input)
  for _, info in ipairs(groups) do
    if field(info, 'name') == group then
      return field(info, 'last-delivered-id'), #groups
    end
  end
  return nil, #groups
end
