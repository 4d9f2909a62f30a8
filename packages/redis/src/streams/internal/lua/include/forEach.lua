--- Processes each item in a call with its keys and arguments. If one item fails, the others are still processed.

-- `sharedKeys` and `sharedArgs` are the numbers of keys and arguments that all items share. `keysOfEach` is the number
-- of keys per item
local function forEach(sharedKeys, keysOfEach, sharedArgs, act)
  local replies, count = {}, (#KEYS - sharedKeys) / keysOfEach
  local argsOfEach = (#ARGV - sharedArgs) / count
  for i = 1, count do
    local slots = { unpack(KEYS, sharedKeys + keysOfEach * (i - 1) + 1, sharedKeys + keysOfEach * i) }
    for at = sharedArgs + argsOfEach * (i - 1) + 1, sharedArgs + argsOfEach * i do
      slots[#slots + 1] = ARGV[at]
    end
    local done, reply = pcall(act, unpack(slots))
    replies[i] = done and reply or { 'error', reply }
  end
  return replies
end
