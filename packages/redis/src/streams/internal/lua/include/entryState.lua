--- Decides whether an entry is unfinished: it exists, and is pending or undelivered.
--- @include compareIds.lua
--- @include groupInfo.lua

local function isUnfinished(input, group, entry)
  if #redis.call('XRANGE', input, entry, entry) == 0 then
    return false
  end
  local pending = redis.pcall('XPENDING', input, group, entry, entry, 1)
  if pending.err or #pending > 0 then
    return true
  end
  local last = lastDelivered(input, group)
  return not last or compareIds(entry, last) > 0
end
