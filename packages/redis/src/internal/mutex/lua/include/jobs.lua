--- Fields of jobs in their mutex's hash, `<attribute>:<job>`.
--- @include clock.lua

local function millis()
  return math.floor(micros() / 1000)
end

local function text(number)
  return string.format('%.0f', number)
end

local function get(jobs, attribute, job)
  return redis.call('HGET', jobs, attribute .. ':' .. job)
end

local function set(jobs, attribute, job, value)
  redis.call('HSET', jobs, attribute .. ':' .. job, value)
end

-- Returns whether it was set
local function clear(jobs, attribute, job)
  return redis.call('HDEL', jobs, attribute .. ':' .. job) == 1
end

-- A leader follows the former schedule up to the change, and the new one from then on
local function change(jobs, attribute, job, value)
  local before = get(jobs, 'override', job) or get(jobs, 'schedule', job)
  if value == '' then
    clear(jobs, attribute, job)
  else
    set(jobs, attribute, job, value)
  end
  local after = get(jobs, 'override', job) or get(jobs, 'schedule', job)
  if before and before ~= after then
    set(jobs, 'former', job, before)
    set(jobs, 'changed', job, text(millis()))
  end
end
