--- Marks data streams as done: deletes their entries and leases, and stores the end in the checkpoint.
---
--- Transition: owned -> done, (none) -> announced
---
--- The data stream is announced again in two cases, where `last` is the id of its newest message at the latest
--- announcement:
--- - The owner committed the end message, and `last` is after it. The messages after the end belong to a new run.
--- - The announcement was repeated, and `last` is not before the checkpoint. Without a checkpoint, any number of
---   repetitions cause only one new announcement.
---
--- If the handler ended without an end message, only the second case applies: unread messages alone do not cause a new
--- announcement.
---
--- If the data stream was deleted and written again with smaller ids, only the second case applies. `last` then never
--- counts as before the checkpoint, because it may be the id of an unread message.
---
--- `include/ownerCheck.lua` refuses callers that are not the owner. It defines `input`, `group` and the other names
--- that all scripts for owned data streams share. This script does not use `handOvers` or `signals`.
---
--- KEYS[1] input
--- KEYS[2] failures
--- KEYS[3] announced
--- KEYS[4] deadLetters
--- KEYS[5] handOvers  possibly unconfirmed
--- KEYS[5n+1] entryLease
--- KEYS[5n+2] streamLease
--- KEYS[5n+3] checkpoint
--- KEYS[5n+4] fence
--- KEYS[5n+5] stream
--- ARGV[1] group
--- ARGV[2] signals  the signal channel
--- ARGV[4n-1] entry
--- ARGV[4n] consumer
--- ARGV[4n+1] value  the entry lease's value: consumer@@epoch
--- ARGV[4n+2] token: number
--- Reply: each 'Done' | 'AlreadyDone' | 'NotOwner'. 'AlreadyDone' if the entry no longer exists.

--- @include include/ownerCheck.lua
--- @include include/announcement.lua
--- @include include/checkpoint.lua
--- @include include/compareIds.lua
--- @include include/rewritten.lua

return forEachOwned(function(lease)
  local stream, entry, checkpoint = lease.stream, lease.entry, lease.checkpoint
  local committed, endedBy, offset = checkpointOf(checkpoint)
  local announcedBy, repeats, last, payload = announcementOf(announced, stream)
  -- Without a checkpoint, the next handler reads everything. Compare before the first write, because comparing fails if
  -- another program has written a checkpoint that is not a valid id
  local order = announcedBy == entry and committed and compareIds(last, committed) or 0
  if order < 0 and isRewritten(stream, committed) then
    order = 0
  end
  local wasThere = finishEntry(input, group, failures, entry, lease.entryLease, lease.streamLease)
  forgetAnnouncement(announced, stream, entry)
  -- Usually, committing the last message has already stored the end
  if committed and endedBy ~= entry then
    writeCheckpoint(checkpoint, committed, entry, offset, keepMillis)
  end
  if announcedBy == entry then
    local hasMoreAfterEnd = order > 0 and endedBy == entry
    local isRepeated = order >= 0 and repeats > 0
    if hasMoreAfterEnd or isRepeated then
      -- The new announcement counts as one of the repetitions
      announce(input, announced, stream, payload, committed and math.max(0, repeats - 1) or 0, last)
    end
  end
  return wasThere and 'Done' or 'AlreadyDone'
end, function(entry)
  return #redis.call('XRANGE', input, entry, entry) == 0 and 'AlreadyDone'
end)
