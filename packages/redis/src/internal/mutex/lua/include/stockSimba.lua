--- Tells contenders of ours from those of stock Simba, whose ids lack the counter and the random part of ours.

-- The channel of its layer; nothing for a stock id
local function inboxOf(id)
  local layer = string.match(id, '^%d+%-(%w%w%w%w%w%w%w%w%w%w%w%w):')
  return layer and 'simba:inbox:' .. layer
end
