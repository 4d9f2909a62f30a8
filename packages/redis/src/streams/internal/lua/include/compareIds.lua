--- Compares entry ids as text. Each part of an id may have up to 20 digits, more than a Lua number can represent.

local function compareText(a, b)
  if #a ~= #b then
    return #a < #b and -1 or 1
  end
  return a < b and -1 or a > b and 1 or 0
end

local function compareIds(a, b)
  local aMillis, aSequence = string.match(a, '^0*(%d*)%-0*(%d*)$')
  local bMillis, bSequence = string.match(b, '^0*(%d*)%-0*(%d*)$')
  local order = compareText(aMillis, bMillis)
  return order ~= 0 and order or compareText(aSequence, bSequence)
end
