--- Makes a contender the owner with a new token, and publishes the acquisition. Called once per grant.
--- @include fence.lua

local function own(owner, fence, id, millis)
  local token, ahead = mint(fence)
  redis.call('SET', owner, id, 'PX', millis)
  redis.call('PUBLISH', owner, 'acquired@@' .. id)
  return token, ahead
end
