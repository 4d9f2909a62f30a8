--- Returns what is wrong with the id of a message, if anything, because nothing could read it later.
--- @include compareIds.lua

local function idProblem(id)
  local most = '18446744073709551615'
  local millis, sequence = string.match(id, '^0*(%d*)%-0*(%d*)$')
  if not string.match(id, '^%d+%-%d+$') or compareText(millis, most) > 0 or compareText(sequence, most) > 0 then
    return 'ERR "' .. id .. '" is not the id of a message: it is <milliseconds>-<sequence>'
  end
end
