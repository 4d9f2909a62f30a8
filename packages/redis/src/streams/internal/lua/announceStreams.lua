--- Announces data streams, except those that have an unfinished announcement.
---
--- KEYS[1] input
--- KEYS[2] announced
--- ARGV[1] group
--- ARGV[2n] stream
--- ARGV[2n+1] payload
--- Reply: { entry, '1' if it was added, else '0' } for each.

local input, announced, group = KEYS[1], KEYS[2], ARGV[1]

--- @include include/entryState.lua
--- @include include/retention.lua

local replies = {}
for i = 2, #ARGV, 2 do
  local stream, payload = ARGV[i], ARGV[i + 1]
  local entry = redis.call('HGET', announced, stream)
  local state = entry and stateOf(entry)
  if state == 'pending' or state == 'new' then
    replies[#replies + 1] = { entry, '0' }
  else
    entry = redis.call('XADD', input, '*', 'lbs-input', payload)
    redis.call('HSET', announced, stream, entry)
    replies[#replies + 1] = { entry, '1' }
  end
end
redis.call('PEXPIRE', announced, keepMillis)
return replies
