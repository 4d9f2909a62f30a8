--- Marks a data stream done: deletes its entry and both leases, and notes the end beside the checkpoint.
---
--- It becomes a new announcement where messages were announced that follow the end, or where it was repeated after the
--- end was written.
---
--- KEYS[1] input
--- KEYS[2] failures
--- KEYS[3] announced
--- KEYS[4] entryLease
--- KEYS[5] streamLease
--- KEYS[6] checkpoint
--- ARGV[1] group
--- ARGV[2] stream
--- ARGV[3] entry
--- ARGV[4] consumer
--- ARGV[5] value  of the entry lease: consumer@@epoch
--- ARGV[6] token
--- Reply: 'Done', 'AlreadyDone' if there is no such entry any more, or 'NotOwner'.

--- @include include/heldLease.lua
--- @include include/removeEntry.lua

local checkpoint = KEYS[6]

--- @include include/checkpoint.lua
--- @include include/compareIds.lua

if not owns() then
  return #redis.call('XRANGE', input, entry, entry) == 0 and 'AlreadyDone' or 'NotOwner'
end
local committed, endedBy = checkpointOf()
local announcedBy, repeats, last, payload = announcementOf(stream)
local count = remove(stream, entry)
redis.call('DEL', entryLease, streamLease)
if committed and endedBy ~= entry then
  redis.call('SET', checkpoint, committed .. '@@' .. entry, 'PX', keepMillis)
end
if announcedBy == entry then
  -- Without a checkpoint the next handler reads all that was written since
  local order = committed and compareIds(last, committed) or 0
  if order > 0 and endedBy == entry or order >= 0 and repeats > 0 then
    announce(stream, payload, committed and math.max(0, repeats - 1) or 0, last)
  end
end
return count > 0 and 'Done' or 'AlreadyDone'
