--- Reads the checkpoint of a data stream, and the entry under which the data stream ended there.
--- Needs checkpoint.

local function checkpointOf()
  return string.match(redis.call('GET', checkpoint) or '', '^([^@]+)@?@?(.*)$')
end
