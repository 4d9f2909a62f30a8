--- Adds to dead letters: the fields as they are, then the reason, the id and the token.
---
--- About 10,000 letters are kept. More fields than a call of Lua can have become one field, `simba-fields`, in JSON.

-- 30 days in ms: dead letters, and the checkpoints that belong to them
local deadMillis = '2592000000'

local function addDead(dead, content, reason, id, token)
  if #content > 7000 then
    content = { 'simba-fields', cjson.encode(content) }
  end
  for _, text in ipairs({ 'simba-reason', reason, 'simba-id', id, 'simba-token', token }) do
    content[#content + 1] = text
  end
  redis.call('XADD', dead, 'MAXLEN', '~', '10000', '*', unpack(content))
  redis.call('PEXPIRE', dead, deadMillis)
end
