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

-- Adds an entry, which is not delivered to a consumer yet
local function announceEntry(input, fields)
  return redis.call('XADD', input, '*', unpack(fields))
end

-- Both leases carry the value of one owner
local function ownEntry(entryLease, streamLease, value, token, lease)
  redis.call('SET', entryLease, value, 'PX', lease)
  redis.call('SET', streamLease, value .. '@@' .. token, 'PX', lease)
end

-- The entry lease expires, so that Redis publishes an expired event; after DEL or an expiry of 0 it publishes none
local function yieldEntry(entryLease, streamLease)
  redis.call('DEL', streamLease)
  redis.call('PEXPIRE', entryLease, 1)
end

-- Forced by an operator: the entry lease expires on its own, and its owner detects the loss at the next renewal
local function disownEntry(streamLease)
  redis.call('DEL', streamLease)
end

-- For a finished entry: nobody waits for its lease's expired event
local function dropLeases(entryLease, streamLease)
  redis.call('DEL', entryLease, streamLease)
end

-- Another program has finished the entry, or the caller records its end. Returns whether the entry existed
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

-- Without its fields, the entry was already deleted: nothing is left to bury
local function buryEntry(input, group, failures, deadLetters, entry, fields, reason, token)
  if fields then
    addDead(deadLetters, fields, reason, entry, token)
  end
  deleteEntry(input, group, failures, entry)
end
