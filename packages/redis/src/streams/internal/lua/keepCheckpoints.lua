--- Keeps checkpoints for another 7 days.
---
--- KEYS[n] checkpoint
--- Reply: '1'.

for _, checkpoint in ipairs(KEYS) do
  redis.call('PEXPIRE', checkpoint, '604800000')
end
return '1'
