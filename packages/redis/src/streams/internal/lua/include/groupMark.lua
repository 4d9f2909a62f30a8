--- Reads and writes a group's mark, an entry. All later entries are known to have been delivered to the group.
---
--- The mark is stored in the name of a consumer without pending entries. It is deleted together with its group, so a
--- new group does not have a mark.
--- @include infoField.lua

local markPrefix = 'simba:given-after:'

local function markOf(name)
  return string.sub(name, 1, #markPrefix) == markPrefix and string.sub(name, #markPrefix + 1) or nil
end

local function readMark(input, group)
  for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', input, group)) do
    local mark = markOf(field(info, 'name'))
    if mark then
      return mark
    end
  end
end

local function writeMark(input, group, entry)
  redis.call('XGROUP', 'CREATECONSUMER', input, group, markPrefix .. entry)
end
