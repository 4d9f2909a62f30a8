--- Returns the owner and the remaining time as text: `<id>@@<remaining ms>`, or `@@` for a free mutex.

local function ownershipOf(owner, current, millis)
  return current and current .. '@@' .. (millis or redis.call('PTTL', owner)) or '@@'
end
