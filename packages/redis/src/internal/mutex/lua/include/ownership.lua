--- Reads who owns the mutex, and for how long: `<id>@@<remaining ms>`, or `@@` for nobody.
--- Needs owner.

local function ownership()
  local current = redis.call('GET', owner)
  if not current then
    return '@@'
  end
  return current .. '@@' .. string.format('%.0f', redis.call('PTTL', owner))
end
