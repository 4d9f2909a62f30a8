--- Finds a data stream's last announcement, if it is unfinished.
---
--- KEYS[1] input
--- KEYS[2] announced
--- ARGV[1] group
--- ARGV[2] stream
--- Reply: Entries. The entry with its fields, or none.

local input, announced = KEYS[1], KEYS[2]
local group, stream = ARGV[1], ARGV[2]

--- @include include/entryState.lua
--- @include include/announcement.lua

local entry = announcementOf(announced, stream)
return entry and isUnfinished(input, group, entry) and redis.call('XRANGE', input, entry, entry) or {}
