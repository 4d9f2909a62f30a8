--- Makes a contender the owner with a new token, and announces it: once for each grant.
--- Needs owner, fence.
--- @include fence.lua

local function own(id, millis)
  local token = mint()
  redis.call('SET', owner, id, 'PX', millis)
  redis.call('PUBLISH', owner, 'acquired@@' .. id)
  return token
end
