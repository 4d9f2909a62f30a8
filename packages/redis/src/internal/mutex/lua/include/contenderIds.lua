--- Distinguishes effect-simba ids from ids of the original library, Simba.
---
--- Contenders from both libraries may share a mutex. An effect-simba id is `<counter>-<random text>:<process>`, where
--- the random text identifies the layer. Simba ids, such as `7:4711@host`, have no such text.

-- Returns the random text of the id's layer; nil for a Simba id
local function layerOf(id)
  local layer = string.match(id, '^%d+%-(%w+):')
  return layer and #layer == 12 and layer or nil
end
