--- Records that the caller yielded its lease: no handler runs under it any more, and its earlier requests are refused.
--- @include retention.lua

local function markYielded(failures, entry, value)
  redis.call('HDEL', failures, entry .. ':busy')
  -- Keeps the last four epochs: a late request may predate the leases of later owners
  local yielded = string.match(value, '@@(.*)$') .. '\n' .. (redis.call('HGET', failures, entry .. ':yielded') or '')
  redis.call('HSET', failures, entry .. ':yielded', string.match(yielded, '^[^\n]+\n?[^\n]*\n?[^\n]*\n?[^\n]*'))
  redis.call('PEXPIRE', failures, keepMillis)
end
