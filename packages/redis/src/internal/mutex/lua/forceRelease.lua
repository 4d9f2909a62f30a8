--- Takes a mutex away from a specific owner, and hands it over as a release does.
---
--- A late copy of the request cannot take the mutex away from a later owner. The script notifies the old owner, and
--- mints a new token, so that resources can reject the old owner's writes. The next owner is granted only the confirm
--- period, because the request does not contain a lease duration.
---
--- KEYS[1] owner
--- KEYS[2] queue
--- KEYS[3] fence
--- KEYS[4] reserved
--- ARGV[1] confirm: ms
--- ARGV[2] skipDead: '1' | 'own' | '0'  dead waiters to skip: all, effect-simba's, or none
--- ARGV[3] id  the owner's id, or '' if the mutex is free
--- Reply: OwnershipText. The ownership before the call. If another owner holds the mutex, nothing changes.

local owner, queue, fence, reserved = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local confirm, skipDead, id = ARGV[1], ARGV[2], ARGV[3]

--- @include include/fence.lua
--- @include include/handOver.lua
--- @include include/ownership.lua

-- Compare only ASCII characters, because an id from another program may contain bytes that the caller cannot decode
local function ascii(text)
  return (string.gsub(text, '[\128-\255]+', '?'))
end

local current = redis.call('GET', owner)
local before = ownershipOf(owner, current)
if ascii(current or '') ~= ascii(id) then
  return before
end
-- Access the queue and the fence first. If either has the wrong type, the call fails before the owner loses the mutex
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
