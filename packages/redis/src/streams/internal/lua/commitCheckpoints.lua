--- Moves the checkpoints of data streams forward.
---
--- KEYS[1] failures
--- KEYS[2n] streamLease
--- KEYS[2n+1] checkpoint
--- ARGV[4n-3] held  value of the stream lease
--- ARGV[4n-2] entry
--- ARGV[4n-1] id    of the message
--- ARGV[4n] last    '1' if it is the last one: the data stream ends there
--- Reply: for each 'Committed', 'Behind', 'NotOwner' or { 'error', message }.

local failures = KEYS[1]
local streamLease, checkpoint, held, entry, id

--- @include include/moveCheckpoint.lua

local replies = {}
for i = 1, (#KEYS - 1) / 2 do
  streamLease, checkpoint = KEYS[2 * i], KEYS[2 * i + 1]
  held, entry, id = ARGV[4 * i - 3], ARGV[4 * i - 2], ARGV[4 * i - 1]
  local done, reply = pcall(moveCheckpoint, ARGV[4 * i] == '1')
  replies[i] = done and reply or { 'error', type(reply) == 'table' and reply.err or tostring(reply) }
end
return replies
