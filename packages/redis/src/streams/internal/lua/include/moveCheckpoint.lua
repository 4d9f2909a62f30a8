--- Moves the checkpoint of a data stream forward, if the caller owns the stream lease.
--- Needs streamLease, checkpoint, failures, held, entry, id.
--- @include compareIds.lua
--- @include retention.lua

local function moveCheckpoint()
  if redis.call('GET', streamLease) ~= held then
    return 'NotOwner'
  end
  local last = redis.call('GET', checkpoint)
  if last and compareIds(id, last) <= 0 then
    return 'Behind'
  end
  redis.call('SET', checkpoint, id, 'PX', keepMillis)
  redis.call('HDEL', failures, entry)
  if redis.call('HSET', failures, entry .. ':moved', '1') == 1 then
    redis.call('PEXPIRE', failures, keepMillis)
  end
  return 'Committed'
end
