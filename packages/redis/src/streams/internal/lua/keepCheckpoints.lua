--- Keeps checkpoints for longer.
---
--- KEYS[n] checkpoint
--- ARGV[1] retention: ms  how long a checkpoint is kept
--- Reply: '1'.

local retention = ARGV[1]

--- @include include/keepCheckpoint.lua

for _, checkpoint in ipairs(KEYS) do
  keepCheckpoint(checkpoint, retention)
end
return '1'
