--- Reads a field of an XINFO reply.

local function field(info, name)
  for i = 1, #info, 2 do
    if info[i] == name then
      return info[i + 1]
    end
  end
end
