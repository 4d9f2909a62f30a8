--- Removes a consumer that leaves, if nothing is pending for it: its pending entries would be deleted with it.
---
--- KEYS[1] input
--- ARGV[1] group
--- ARGV[2] consumer
--- Reply: Flag. Whether it is gone: not if something is pending.

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
