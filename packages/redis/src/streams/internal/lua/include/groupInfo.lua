--- Reads the service group's last delivered id, and the number of groups, with XINFO.
--- @include infoField.lua

local function lastDelivered(input, group)
  -- If the stream does not exist, this is an error reply, over which `ipairs` does not iterate
  local groups = redis.pcall('XINFO', 'GROUPS', input)
  for _, info in ipairs(groups) do
    if field(info, 'name') == group then
      return field(info, 'last-delivered-id'), #groups
    end
  end
  return nil, #groups
end
