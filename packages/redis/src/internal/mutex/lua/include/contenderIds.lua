--- Distinguishes effect-simba ids from those of Simba, the original library.
---
--- Contenders of both may share a mutex. A Simba id lacks the counter and the layer's random text.

-- Returns the layer's random text; nil for a Simba id
local function layerOf(id)
  local layer = string.match(id, '^%d+%-(%w+):')
  return layer and #layer == 12 and layer or nil
end

-- Returns the layer's channel; nil for a Simba id
local function inboxOf(id)
  local layer = layerOf(id)
  return layer and 'simba:inbox:' .. layer
end
