--- Announces data streams.
---
--- Transition: (none) -> announced
---
--- If a data stream already has an unfinished announcement, that announcement is instead marked as repeated, but only
--- if messages were added since the data stream was last announced, or if there have never been any messages.
---
--- KEYS[1] input
--- KEYS[2] announced
--- KEYS[n+2] stream
--- ARGV[1] group
--- ARGV[2n] stream
--- ARGV[2n+1] payload
--- Reply: { entry: EntryId, Flag }[]. Each announcement's entry, and whether it was added.

local input, announced, group = KEYS[1], KEYS[2], ARGV[1]

--- @include include/entryState.lua
--- @include include/announcement.lua

local replies = {}
for i = 2, #ARGV, 2 do
  local stream, payload = ARGV[i], ARGV[i + 1]
  local last = lastMessage(KEYS[i / 2 + 2])
  local entry, repeats, known = announcementOf(announced, stream)
  if entry and isUnfinished(input, group, entry) then
    -- Without new messages, assume that a producer is retrying because it did not receive the reply
    if last ~= known or last == '0-0' then
      note(announced, stream, entry, repeats + 1, last, payload)
    end
    replies[#replies + 1] = { entry, '0' }
  else
    replies[#replies + 1] = { announce(input, announced, stream, payload, 0, last), '1' }
  end
end
return replies
