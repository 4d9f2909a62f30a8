--- Records that the caller has yielded its lease. No handler runs under it any more, and late requests are refused.
--- @include retention.lua

local function markYielded(failures, entry, value)
  redis.call('HDEL', failures, entry .. ':busy')
  -- Keep the last four epochs, because a late request may be older than the leases of several later owners
  local yielded = string.match(value, '@@(.*)$') .. '\n' .. (redis.call('HGET', failures, entry .. ':yielded') or '')
  redis.call('HSET', failures, entry .. ':yielded', string.match(yielded, '^[^\n]+\n?[^\n]*\n?[^\n]*\n?[^\n]*'))
  redis.call('PEXPIRE', failures, keepMillis)
end
