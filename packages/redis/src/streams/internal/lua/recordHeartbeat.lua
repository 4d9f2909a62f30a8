--- Records a member's heartbeat, and removes members whose heartbeats are overdue.
---
--- Called by `rebalancer`, which uses each member's capacity and number of owned data streams to decide how many data
--- streams to hand over to whom. The key expires, because nobody removes the last member if it crashes. `now` is
--- defined in `clock.lua`, which `liveMembers.lua` includes.
---
--- KEYS[1] members
--- ARGV[1] member  consumer@@session
--- ARGV[2] capacity: number
--- ARGV[3] owned: number
--- ARGV[4] expiry: ms
--- Reply: Member[].

local members, member, capacity, owned, expiry = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]

--- @include include/liveMembers.lua

redis.call('HSET', members, member, table.concat({ capacity, owned, string.format('%.0f', now), expiry }, '|'))
if redis.call('PTTL', members) < tonumber(expiry) then
  redis.call('PEXPIRE', members, expiry)
end
return liveMembers(members)
