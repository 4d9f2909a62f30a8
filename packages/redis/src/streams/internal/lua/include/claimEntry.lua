--- Gives the entry of a data stream to a consumer.
--- Needs input, group, entry.

-- Without a group there is nothing pending, and the next group hands everything out again
local function claimFor(consumer, idle)
  local reply = redis.pcall('XCLAIM', input, group, consumer, '0', entry, 'IDLE', idle, 'JUSTID')
  if reply.err and not string.find(reply.err, 'NOGROUP', 1, true) then
    error(reply.err)
  end
end
