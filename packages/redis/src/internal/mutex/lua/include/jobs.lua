--- Fields of jobs in the hash of their mutex, `<attribute>:<job>`.
---
--- Needs jobs, micros.

local function millis()
  return math.floor(micros() / 1000)
end

local function text(number)
  return string.format('%.0f', number)
end

local function get(attribute, job)
  return redis.call('HGET', jobs, attribute .. ':' .. job)
end

local function set(attribute, job, value)
  redis.call('HSET', jobs, attribute .. ':' .. job, value)
end

local function clear(attribute, job)
  redis.call('HDEL', jobs, attribute .. ':' .. job)
end

-- A leader keeps to the former schedule up to the change, and to the new one from there on
local function change(job, attribute, value)
  local before = get('override', job) or get('schedule', job)
  if value == '' then
    clear(attribute, job)
  else
    set(attribute, job, value)
  end
  local after = get('override', job) or get('schedule', job)
  if before and before ~= after then
    set('former', job, before)
    set('changed', job, text(millis()))
  end
end
