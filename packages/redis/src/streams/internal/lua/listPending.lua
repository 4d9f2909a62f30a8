--- Lists pending entries, a page, and notes the caller as a consumer of this library.
---
--- A consumer is one of this library if it was noted in the last ten minutes, or if it is known as the last of this
--- library that ran the entry or gave it back. All others are stock consumers.
---
--- KEYS[1] input
--- KEYS[2] failures
--- KEYS[3] consumers  of this library, by the ms until which they count as such
--- ARGV[1] group
--- ARGV[2] minIdle    ms
--- ARGV[3] from       first id
--- ARGV[4] count      entries of a page
--- ARGV[5] consumer   whose, or '' for all
--- ARGV[6] self       the caller, or ''
--- Reply: { where to go on or '', { { id, consumer, idle ms, deliveries, '1' if it is a stock one }, ... } }.

local input, failures, consumers = KEYS[1], KEYS[2], KEYS[3]
local group, minIdle, from, count, consumer, self = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

--- @include include/clock.lua

local notedMillis = 600000

if self ~= '' then
  redis.call('ZREMRANGEBYSCORE', consumers, '-inf', string.format('%.0f', now - 1))
  redis.call('ZADD', consumers, string.format('%.0f', now + notedMillis), self)
  redis.call('PEXPIRE', consumers, notedMillis)
end
local command = { 'XPENDING', input, group, 'IDLE', minIdle, from, '+', count }
if consumer ~= '' then
  command[#command + 1] = consumer
end
local rows = redis.call(unpack(command))

local isNoted, strangers, fields = {}, {}, {}
for _, row in ipairs(rows) do
  local name = row[2]
  if isNoted[name] == nil then
    isNoted[name] = tonumber(redis.call('ZSCORE', consumers, name) or '0') >= now
  end
  row[5] = '0'
  if not isNoted[name] then
    strangers[#strangers + 1] = row
    fields[#fields + 1] = row[1] .. ':by'
    fields[#fields + 1] = row[1] .. ':gave'
  end
end
if #strangers > 0 then
  local values = redis.call('HMGET', failures, unpack(fields))
  for i, row in ipairs(strangers) do
    local mark = row[2] .. '@@'
    local by, gave = values[2 * i - 1] or '', values[2 * i] or ''
    if string.sub(by, 1, #mark) ~= mark and string.sub(gave, 1, #mark) ~= mark then
      row[5] = '1'
    end
  end
end
return { #rows == tonumber(count) and rows[#rows][1] or '', rows }
