--- Lists pending entries, a page. Removes those that are deleted.
---
--- KEYS[1] input
--- KEYS[2] failures
--- KEYS[3] announced
--- ARGV[1] group
--- ARGV[2] minIdle   ms
--- ARGV[3] from      first id
--- ARGV[4] count     entries of a page
--- ARGV[5] consumer  whose, or '' for all
--- Reply: { where to go on or '', { { id, consumer, idle ms, fields }, ... } }.

local input, failures, announced = KEYS[1], KEYS[2], KEYS[3]
local group, minIdle, from, count, consumer = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

--- @include include/removeEntry.lua

local command = { 'XPENDING', input, group, 'IDLE', minIdle, from, '+', count }
if consumer ~= '' then
  command[#command + 1] = consumer
end
local rows = redis.call(unpack(command))
local found = {}
for _, row in ipairs(rows) do
  local entry = redis.call('XRANGE', input, row[1], row[1])[1]
  if entry then
    found[#found + 1] = { row[1], row[2], row[3], entry[2] }
  else
    remove('', row[1])
  end
end
return { #rows == tonumber(count) and rows[#rows][1] or '', found }
