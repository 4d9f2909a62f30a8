--- Adds a dead letter: the entry's unchanged fields, then the reason, the id and the token.
---
--- Returns the letter's id. About 10,000 letters are kept. If there are more fields than a Lua call can take, they are
--- packed as JSON into a single field, `simba-fields`.

-- 30 days in ms, for dead letters and their checkpoints
local deadMillis = '2592000000'

local function packed(content)
  return #content > 7000 and { 'simba-fields', cjson.encode(content) } or content
end

local function addDead(dead, content, reason, id, token)
  local letter = { unpack(packed(content)) }
  for _, text in ipairs({ 'simba-reason', reason, 'simba-id', id, 'simba-token', token }) do
    letter[#letter + 1] = text
  end
  local added = redis.call('XADD', dead, 'MAXLEN', '~', '10000', '*', unpack(letter))
  redis.call('PEXPIRE', dead, deadMillis)
  return added
end
