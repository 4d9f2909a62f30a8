--- Decides who is granted a free mutex, for `acquire`.
--- @include handOver.lua

-- Returns whether the caller may take the mutex, the id of the waiter that was granted it instead, and whether the
-- caller must hold back for a Simba waiter
local function claim(mutex, id, confirm, lease, ticket)
  local score = redis.call('ZSCORE', mutex.queue, id)
  -- Ignore a reservation without an expiry, because another program wrote it
  if redis.call('PTTL', mutex.reserved) > 0 then
    -- If the waiter has a ticket but no place, a Simba release has removed it from the queue: it is this waiter's turn
    local isItsTurn = ticket and not score
    return isItsTurn, nil, not isItsTurn
  end
  local notified, granted = handOver(mutex, id, confirm, lease, id, tonumber(score or '') or ticket)
  return not notified, granted, notified and not granted
end
