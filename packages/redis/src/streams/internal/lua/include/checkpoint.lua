--- Moves the checkpoint of a data stream forward, if the caller owns the stream lease.

local streamLease, checkpoint, failures = KEYS[1], KEYS[2], KEYS[3]
local held, entry, id = ARGV[1], ARGV[2], ARGV[3]

--- @include compareIds.lua

local function move()
  if redis.call('GET', streamLease) ~= held then
    return 'NotOwner'
  end
  local last = redis.call('GET', checkpoint)
  if last and compareIds(id, last) <= 0 then
    return 'Behind'
  end
  redis.call('SET', checkpoint, id, 'PX', '604800000')
  redis.call('HDEL', failures, entry)
  if redis.call('HSET', failures, entry .. ':moved', '1') == 1 then
    redis.call('PEXPIRE', failures, '604800000')
  end
  return 'Committed'
end
