--- Returns who owns the mutex, and for how long: `<id>@@<remaining ms>`, or `@@` for nobody.
--- Needs owner.

local function ownershipOf(current, millis)
  return current and current .. '@@' .. (millis or redis.call('PTTL', owner)) or '@@'
end
