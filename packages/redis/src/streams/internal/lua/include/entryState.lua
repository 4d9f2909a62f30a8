--- Decides the state of an entry.
---
---   gone      deleted
---   pending   a consumer has it
---   new       no consumer was given it yet
---   finished  acknowledged, and not deleted
--- Needs input, group.
--- @include compareIds.lua
--- @include groupInfo.lua

local function stateOf(entry)
  if #redis.call('XRANGE', input, entry, entry) == 0 then
    return 'gone'
  end
  local pending = redis.pcall('XPENDING', input, group, entry, entry, 1)
  if pending.err then
    return 'new'
  elseif #pending > 0 then
    return 'pending'
  end
  local last = lastDelivered()
  return last and compareIds(entry, last) <= 0 and 'finished' or 'new'
end
