--- Removes a consumer that is leaving, unless it has pending entries, because Redis would remove them too.
---
--- KEYS[1] input
--- ARGV[1] group
--- ARGV[2] consumer
--- Reply: Flag. Whether the consumer is gone.

local input, group, consumer = KEYS[1], ARGV[1], ARGV[2]

local pending = redis.pcall('XPENDING', input, group, '-', '+', 1, consumer)
if pending.err then
  if string.find(pending.err, 'NOGROUP', 1, true) then
    return '1'
  end
  return pending
elseif #pending > 0 then
  return '0'
end
redis.call('XGROUP', 'DELCONSUMER', input, group, consumer)
return '1'
