--- Announces a dead letter again. Its data stream continues at its checkpoint, or remains ended.
---
--- Transition: dead -> announced
---
--- If the data stream was announced in the meantime, the letter is only deleted, because the newer announcement
--- continues after the checkpoint too.
---
--- Repeated announcements become a single letter, so the new announcement covers all messages up to now. If the data
--- stream ends before the last of these messages, markDone.lua announces it again.
---
--- The fields added by `addDeadLetter.lua` are left out. `simba-id` is the previous announcement's id. If the data
--- stream ended under it, the checkpoint is changed to name the new announcement, so the data stream remains ended,
--- unless it was deleted and written again with smaller ids.
---
--- KEYS[1] input
--- KEYS[2] deadLetters
--- KEYS[3] announced
--- KEYS[4] checkpoint
--- KEYS[5] messages  the data stream
--- ARGV[1] group
--- ARGV[2] letter  the dead letter's id
--- ARGV[3] stream  the letter's data stream, or ''
--- ARGV[4] text  the announcement's text if its fields are packed into one, or ''
--- Reply: Flag. Whether there is such a letter.

local input, deadLetters, announced, checkpoint, messages = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local group, letter, stream, text = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

--- @include include/announcement.lua
--- @include include/entryState.lua
--- @include include/checkpoint.lua
--- @include include/rewritten.lua

local found = redis.call('XRANGE', deadLetters, letter, letter)[1]
if not found then
  return '0'
end
local present = stream ~= '' and announcementOf(announced, stream)
if present and isUnfinished(input, group, present) then
  redis.call('XDEL', deadLetters, letter)
  return '1'
end
local fields, before = {}, nil
if text ~= '' then
  fields = { 'lbs-input', text }
end
for i = 1, #found[2], 2 do
  local name = found[2][i]
  if name ~= 'simba-reason' and name ~= 'simba-id' and name ~= 'simba-token' then
    fields[#fields + 1] = name
    fields[#fields + 1] = found[2][i + 1]
  elseif name == 'simba-id' then
    before = found[2][i + 1]
  end
end
local committed, endedBy, offset
if stream ~= '' then
  -- Read the checkpoint before the first write, because its key may have the wrong type
  committed, endedBy, offset = checkpointOf(checkpoint)
end
local entry = announceEntry(input, fields)
redis.call('XDEL', deadLetters, letter)
if stream ~= '' then
  note(announced, stream, entry, 0, lastMessage(messages), field(fields, 'lbs-input'))
  if committed and endedBy == before and not isRewritten(messages, committed) then
    writeCheckpoint(checkpoint, committed, entry, offset, keepMillis)
  end
end
return '1'
