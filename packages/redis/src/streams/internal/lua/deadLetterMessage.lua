--- Moves the checkpoint behind a message, and the message to the dead letters of its data stream.
---
--- KEYS[1] streamLease
--- KEYS[2] checkpoint
--- KEYS[3] failures
--- KEYS[4] deadMessages
--- ARGV[1] held      value of the stream lease
--- ARGV[2] entry
--- ARGV[3] id        of the message
--- ARGV[4] reason
--- ARGV[5] token
--- ARGV[6..] fields  of the message
--- Reply: 'Committed', 'Behind' or 'NotOwner'.

local streamLease, checkpoint, failures, deadMessages = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local held, entry, id, reason, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

--- @include include/moveCheckpoint.lua
--- @include include/addDeadLetter.lua

local order = orderOf()
if order == 'Committed' then
  local fields = {}
  for i = 6, #ARGV do
    fields[#fields + 1] = ARGV[i]
  end
  -- First: where it fails, the message is not passed
  addDead(deadMessages, fields, reason, id, token)
end
return moveCheckpoint()
