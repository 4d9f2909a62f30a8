--- Reads whether a data stream has ended at its checkpoint.
---
--- KEYS[1] checkpoint
--- KEYS[2] stream
--- ARGV[1] entry  that announced the data stream
--- Reply: 'Open' | 'Reopened' | 'Ended'. 'Ended' if the data stream ended under this entry, or ended and no longer
---   exists. 'Reopened' if it ended under an earlier entry and still exists.

local checkpoint, stream, entry = KEYS[1], KEYS[2], ARGV[1]

--- @include include/checkpoint.lua

local _, endedBy = checkpointOf(checkpoint)
if not endedBy or endedBy == '' then
  return 'Open'
end
return (endedBy == entry or redis.call('EXISTS', stream) == 0) and 'Ended' or 'Reopened'
