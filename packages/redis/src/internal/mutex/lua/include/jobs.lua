--- Reads and writes jobs in the mutex's `jobs` hash, whose fields are named `<attribute>:<job>`.
--- @include clock.lua

local function millis()
  return math.floor(now / 1000)
end

local function text(number)
  return string.format('%.0f', number)
end

local function get(jobs, attribute, job)
  return redis.call('HGET', jobs, attribute .. ':' .. job)
end

-- Returns nil if the value is invalid, so another program must have written it
local function count(value)
  return value and #value <= 16 and string.match(value, '^%d+$') and tonumber(value) or nil
end

local function set(jobs, attribute, job, value)
  redis.call('HSET', jobs, attribute .. ':' .. job, value)
end

-- Deletes a field. Returns whether it existed
local function clear(jobs, attribute, job)
  return redis.call('HDEL', jobs, attribute .. ':' .. job) == 1
end

-- The maximum number of former schedules
local mostFormer = 8

-- Changes a schedule. Records the former schedule and the time of the change, because leaders apply the former schedule
-- up to then. Drops former schedules whose times have all been handled. At the maximum, replaces the last one
local function change(jobs, attribute, job, value)
  local before = get(jobs, 'override', job) or get(jobs, 'schedule', job)
  if value == '' then
    clear(jobs, attribute, job)
  else
    set(jobs, attribute, job, value)
  end
  local after = get(jobs, 'override', job) or get(jobs, 'schedule', job)
  if before and before ~= after then
    local at, former = count(get(jobs, 'at', job)) or 0, {}
    for til, schedule in string.gmatch(get(jobs, 'replaced', job) or '', '(%d+) ([^\n]+)') do
      if tonumber(til) > at then
        former[#former + 1] = til .. ' ' .. schedule
      end
    end
    former[math.min(#former + 1, mostFormer)] = text(millis()) .. ' ' .. before
    set(jobs, 'replaced', job, table.concat(former, '\n'))
  end
end
