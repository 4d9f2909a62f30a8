--- Moves the checkpoint behind a message, and the message to the dead letters of its data stream.
---
--- KEYS[1] streamLease
--- KEYS[2] checkpoint
--- KEYS[3] failures
--- KEYS[4] dead      dead letters of the data stream
--- ARGV[1] held      value of the stream lease
--- ARGV[2] entry
--- ARGV[3] id        of the message
--- ARGV[4] reason
--- ARGV[5] token
--- ARGV[6..] fields  of the message
--- Reply: 'Committed', 'Behind' or 'NotOwner'.

--- @include include/checkpoint.lua
--- @include include/deadLetter.lua

local moved = move()
if moved == 'Committed' then
  addDead(KEYS[4], { unpack(ARGV, 6) }, ARGV[4], id, ARGV[5])
end
return moved
