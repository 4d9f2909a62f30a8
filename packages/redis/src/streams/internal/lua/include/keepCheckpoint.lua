--- Keeps a checkpoint for so many milliseconds at least.

-- Never shortens the time that is left
local function keepCheckpoint(key, millis)
  if redis.call('PTTL', key) < tonumber(millis) then
    redis.call('PEXPIRE', key, millis)
  end
end
