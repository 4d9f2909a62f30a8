--- Takes a mutex from the owner that the caller names, and hands it over as a release does.
---
--- A late copy of the request cannot take it from a later owner. Takes a new token, so that resources refuse the old
--- owner, and notifies that owner. The next owner is granted only the confirm period, because no releasing layer
--- supplies the length of a lease.
---
--- KEYS[1] owner
--- KEYS[2] queue
--- KEYS[3] fence
--- KEYS[4] reserved
--- ARGV[1] confirm: ms
--- ARGV[2] skipDead: '1' | 'own' | '0'  which dead waiters to skip: all, those of effect-simba, or none
--- ARGV[3] id  of the owner, or '' for nobody
--- Reply: OwnershipText. The ownership before the call. If another owner has the mutex, nothing changes.

local owner, queue, fence, reserved = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local confirm, skipDead, id = ARGV[1], ARGV[2], ARGV[3]

--- @include include/fence.lua
--- @include include/handOver.lua
--- @include include/ownership.lua

-- Another program's id may have bytes that the caller cannot read as text, so only ASCII characters are compared
local function ascii(text)
  return (string.gsub(text, '[\128-\255]+', '?'))
end

local current = redis.call('GET', owner)
local before = ownershipOf(owner, current)
if ascii(current or '') ~= ascii(id) then
  return before
end
-- First: if the queue or the fence has the wrong type, the call fails before the owner loses the mutex
redis.call('ZCARD', queue)
mint(fence)
redis.call('DEL', owner, reserved)
local mutex = {
  owner = owner, queue = queue, fence = fence, reserved = reserved, skipDead = skipDead ~= '0' and skipDead
}
handOver(mutex, current or 'nobody', confirm)
if current then
  local inbox = inboxOf(current)
  if inbox then
    redis.call('PUBLISH', inbox, 'forced@@' .. current)
  else
    redis.call('PUBLISH', owner .. ':' .. current, 'released@@' .. current)
  end
end
return before
