--- Keeps a checkpoint for at least `millis` more milliseconds.

-- Never shortens the remaining time
local function keepCheckpoint(key, millis)
  if redis.call('PTTL', key) < tonumber(millis) then
    redis.call('PEXPIRE', key, millis)
  end
end
