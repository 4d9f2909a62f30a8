--- Notes that the caller gave its lease up. No handler runs under it any more, and its earlier requests come too late.
--- Needs failures, entry, value.
--- @include retention.lua

local function markYielded()
  redis.call('HDEL', failures, entry .. ':by')
  -- The last few: a request may be older than the lease of another
  local given = value .. '\n' .. (redis.call('HGET', failures, entry .. ':gave') or '')
  redis.call('HSET', failures, entry .. ':gave', string.match(given, '^[^\n]+\n?[^\n]*\n?[^\n]*\n?[^\n]*'))
  redis.call('PEXPIRE', failures, keepMillis)
end
