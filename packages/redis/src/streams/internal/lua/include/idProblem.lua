--- Returns what is wrong with a message id, or nil.
---
--- An invalid id must not be stored, because it could not be decoded later.
--- @include compareIds.lua

local function idProblem(id)
  local most = '18446744073709551615'
  local millis, sequence = string.match(id, '^0*(%d*)%-0*(%d*)$')
  if not string.match(id, '^%d+%-%d+$') or compareText(millis, most) > 0 or compareText(sequence, most) > 0 then
    return 'ERR "' .. id .. '" is not a message id: expected <milliseconds>-<sequence>'
  end
end
