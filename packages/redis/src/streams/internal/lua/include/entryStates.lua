--- The states of an entry, and the only functions that move it from one to another.
---
--- Each line shows a transition. The heads of scripts say which transitions they make, and protocol.md draws them all.
--- announceEntry  (none), dead -> announced
--- ownEntry       announced, owned -> owned
--- yieldEntry     owned -> announced
--- disownEntry    owned -> announced
--- finishEntry    owned -> done
--- buryEntry      announced, owned -> dead
--- @include addDeadLetter.lua

-- Not delivered to a consumer yet
local function announceEntry(input, fields)
  return redis.call('XADD', input, '*', unpack(fields))
end

-- Both leases carry the value of one owner
local function ownEntry(entryLease, streamLease, value, token, lease)
  redis.call('SET', entryLease, value, 'PX', lease)
  redis.call('SET', streamLease, value .. '@@' .. token, 'PX', lease)
end

-- The entry lease expires with an expired event. A deletion has none, nor an expiry of 0
local function yieldEntry(entryLease, streamLease)
  redis.call('DEL', streamLease)
  redis.call('PEXPIRE', entryLease, 1)
end

-- By force: the entry lease expires in its time, and its owner learns of it at the next renewal
local function disownEntry(streamLease)
  redis.call('DEL', streamLease)
end

-- Of an entry that is over: nobody waits for an event of its lease
local function dropLeases(entryLease, streamLease)
  redis.call('DEL', entryLease, streamLease)
end

-- Others have finished it, or the caller records its end. Returns whether it was there
local function deleteEntry(input, group, failures, entry)
  -- First, because the key may be of another type
  redis.call('HDEL', failures, entry, entry .. ':busy', entry .. ':last', entry .. ':yielded')
  redis.call('XACK', input, group, entry)
  return redis.call('XDEL', input, entry) > 0
end

-- Returns whether it was there
local function finishEntry(input, group, failures, entry, entryLease, streamLease)
  local wasThere = deleteEntry(input, group, failures, entry)
  dropLeases(entryLease, streamLease)
  return wasThere
end

-- Without its fields it was gone before: nothing is left to bury
local function buryEntry(input, group, failures, deadLetters, entry, fields, reason, token)
  if fields then
    addDead(deadLetters, fields, reason, entry, token)
  end
  deleteEntry(input, group, failures, entry)
end
