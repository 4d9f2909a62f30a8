--- Tells the ids of effect-simba from those of Simba, which lack the counter and the random text of the layer.

-- The channel of the layer; nil for a Simba id
local function inboxOf(id)
  local layer = string.match(id, '^%d+%-(%w%w%w%w%w%w%w%w%w%w%w%w):')
  return layer and 'simba:inbox:' .. layer
end
