--- Assigns a data stream's entry to a consumer.

-- A missing group is not an error, because a new group delivers all entries again
local function claimEntry(input, group, entry, consumer, idle)
  local reply = redis.pcall('XCLAIM', input, group, consumer, '0', entry, 'IDLE', idle, 'JUSTID')
  if reply.err and not string.find(reply.err, 'NOGROUP', 1, true) then
    error(reply.err)
  end
end
