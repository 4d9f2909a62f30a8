--- Notes that the caller gave its lease up: no handler runs under it any more, and what it asked for before is too late.

local function gaveUp()
  redis.call('HDEL', failures, entry .. ':by')
  redis.call('HSET', failures, entry .. ':gave', value)
  redis.call('PEXPIRE', failures, '604800000')
end
