--- Marks data streams as done: deletes their entries and leases, and stores the end in the checkpoint.
---
--- Transition: owned -> done, (none) -> announced
---
--- The data stream is announced again in two cases. `last` is the id of its newest message at the latest announcement.
--- - `last` is after the end message, which the owner committed: the messages after the end belong to a new run.
--- - The announcement was repeated, and `last` is not before the checkpoint. Without a checkpoint, repetitions cause
---   one new announcement, however many there were.
---
--- If the handler ended without an end message, only the second case applies. Messages that it did not read do not
--- count.
---
--- If the data stream was deleted and written again with smaller ids, only the second case applies, and `last` does not
--- count as before the checkpoint: it may be the id of a message that was not read.
---
--- `include/ownerCheck.lua` refuses callers that are not the owner. It also defines `input`, `group` and the other KEYS
--- and ARGV that all scripts for owned data streams share. `handOvers` and `signals` are not used here.
---
--- KEYS[1] input
--- KEYS[2] failures
--- KEYS[3] announced
--- KEYS[4] deadLetters
--- KEYS[5] handOvers  that may be unconfirmed
--- KEYS[5n+1] entryLease
--- KEYS[5n+2] streamLease
--- KEYS[5n+3] checkpoint
--- KEYS[5n+4] fence
--- KEYS[5n+5] stream
--- ARGV[1] group
--- ARGV[2] signals  the channel of signals
--- ARGV[4n-1] entry
--- ARGV[4n] consumer
--- ARGV[4n+1] value  of the entry lease: consumer@@epoch
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
  -- Without a checkpoint, the next handler reads everything. Compare before the first write, because another program
  -- may have written a checkpoint that is not a valid id
  local order = announcedBy == entry and committed and compareIds(last, committed) or 0
  if order < 0 and isRewritten(stream, committed) then
    order = 0
  end
  local wasThere = finishEntry(input, group, failures, entry, lease.entryLease, lease.streamLease)
  forgetAnnouncement(announced, stream, entry)
  -- The commit of the last message has usually stored the end already
  if committed and endedBy ~= entry then
    writeCheckpoint(checkpoint, committed, entry, offset, keepMillis)
  end
  if announcedBy == entry then
    local hasMoreAfterEnd = order > 0 and endedBy == entry
    local isRepeated = order >= 0 and repeats > 0
    if hasMoreAfterEnd or isRepeated then
      -- The new announcement is one of the repetitions
      announce(input, announced, stream, payload, committed and math.max(0, repeats - 1) or 0, last)
    end
  end
  return wasThere and 'Done' or 'AlreadyDone'
end, function(entry)
  return #redis.call('XRANGE', input, entry, entry) == 0 and 'AlreadyDone'
end)
