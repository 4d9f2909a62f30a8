--- Renews each lease to its full duration if its id is still the owner. Never creates a key.
---
--- An error for one key does not affect the others.
---
--- KEYS[n] owner
--- ARGV[1..] idsAndLeases  each key's lease id, then each key's lease in ms, or one lease for all
--- Reply: ({ Natural, 'owner', OwnershipText } | { Natural, 'error', text })[]. The one-based index of each key that
---   was not renewed, and its ownership or error.

local missed = {}
for i, owner in ipairs(KEYS) do
  local current = redis.pcall('GET', owner)
  if type(current) == 'table' then
    missed[#missed + 1] = { i, 'error', current.err }
  elseif current == ARGV[i] then
    redis.call('PEXPIRE', owner, ARGV[#KEYS + i] or ARGV[#KEYS + 1])
  elseif current then
    missed[#missed + 1] = { i, 'owner', current .. '@@' .. string.format('%.0f', redis.call('PTTL', owner)) }
  else
    missed[#missed + 1] = { i, 'owner', '@@' }
  end
end
return missed
