--- Returns who owns the mutex, and for how long: `<id>@@<remaining ms>`, or `@@` for nobody.

local function ownershipOf(owner, current, millis)
  return current and current .. '@@' .. (millis or redis.call('PTTL', owner)) or '@@'
end
