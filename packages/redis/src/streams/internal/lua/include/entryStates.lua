--- Defines the only functions that move an entry from one state to another.
---
--- Each line below shows a transition. Each script's header comment lists the transitions that it makes, and
--- protocol.md shows a diagram of all transitions.
---
--- announceEntry  (none), dead -> announced
--- ownEntry       announced, owned -> owned
--- yieldEntry     owned -> announced
--- disownEntry    owned -> announced
--- finishEntry    owned -> done
--- buryEntry      announced, owned -> dead
--- @include addDeadLetter.lua

-- Adds an entry that no consumer has read yet
local function announceEntry(input, fields)
  return redis.call('XADD', input, '*', unpack(fields))
end

-- Sets both leases to the same owner
local function ownEntry(entryLease, streamLease, value, token, lease)
  redis.call('SET', entryLease, value, 'PX', lease)
  redis.call('SET', streamLease, value .. '@@' .. token, 'PX', lease)
end

-- Lets the entry lease expire, because Redis does not publish an expired event after DEL or an expiry of 0
local function yieldEntry(entryLease, streamLease)
  redis.call('DEL', streamLease)
  redis.call('PEXPIRE', entryLease, 1)
end

-- Ends a lease for an operator. The entry lease expires by itself, and the owner detects the loss on its next renewal
local function disownEntry(streamLease)
  redis.call('DEL', streamLease)
end

-- Deletes a finished entry's leases. Nobody is waiting for their expired events
local function dropLeases(entryLease, streamLease)
  redis.call('DEL', entryLease, streamLease)
end

-- Deletes an entry. Either another program has finished it, or the caller has recorded its end. Returns whether it
-- existed
local function deleteEntry(input, group, failures, entry)
  -- Access this key first, because it may have the wrong type
  redis.call('HDEL', failures, entry, entry .. ':busy', entry .. ':last', entry .. ':yielded')
  redis.call('XACK', input, group, entry)
  return redis.call('XDEL', input, entry) > 0
end

-- Returns whether the entry existed
local function finishEntry(input, group, failures, entry, entryLease, streamLease)
  local wasThere = deleteEntry(input, group, failures, entry)
  dropLeases(entryLease, streamLease)
  return wasThere
end

-- If the entry was already deleted, `fields` is nil and no dead letter is added
local function buryEntry(input, group, failures, deadLetters, entry, fields, reason, token)
  if fields then
    addDead(deadLetters, fields, reason, entry, token)
  end
  deleteEntry(input, group, failures, entry)
end
