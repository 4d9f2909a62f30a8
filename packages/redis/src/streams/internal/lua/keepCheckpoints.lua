--- Keeps checkpoints for another 7 days.
---
--- KEYS[n] checkpoint
--- Reply: '1'.

--- @include include/retention.lua

for _, checkpoint in ipairs(KEYS) do
  redis.call('PEXPIRE', checkpoint, keepMillis)
end
return '1'
