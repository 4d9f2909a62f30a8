--- Notes that the caller gave its lease up. No handler runs under it any more, and its earlier requests come too late.
--- Needs failures, entry, value.
--- @include retention.lua

local function markYielded()
  redis.call('HDEL', failures, entry .. ':by')
  redis.call('HSET', failures, entry .. ':gave', value)
  redis.call('PEXPIRE', failures, keepMillis)
end
