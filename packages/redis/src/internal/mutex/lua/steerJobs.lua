--- Stores an operator's request. The leader finds the request when it reads its jobs.
---
--- KEYS[1] owner
--- KEYS[2] jobs
--- ARGV[1] order  'Run', 'Pause', 'Resume', 'Reschedule' or 'StepDown'
--- ARGV[2] job  '' for all of the mutex's jobs
--- ARGV[3] schedule  for 'Reschedule'; '' for the schedule in the code
--- Reply: Flag. '0' if there is no such job or no leader to step down.

local owner, jobs = KEYS[1], KEYS[2]
local order, job, schedule = ARGV[1], ARGV[2], ARGV[3]

--- @include include/jobs.lua

-- 30 days in ms, long enough for a leader to read the request
local retention = 30 * 86400000

-- Lets the jobs expire if no leader reads them and none of them are paused
local function expire()
  for _, field in ipairs(redis.call('HKEYS', jobs)) do
    if field == 'paused' or string.match(field, '^paused:') then
      return
    end
  end
  redis.call('PEXPIRE', jobs, retention)
end

-- Skips the runs that were due during the pause
local function resume(name)
  set(jobs, 'at', name, text(math.max(millis(), count(get(jobs, 'at', name)) or 0)))
end

if redis.call('EXISTS', jobs) == 0 then
  return '0'
end
if order == 'StepDown' then
  local leader = redis.call('GET', owner)
  if not leader then
    return '0'
  end
  redis.call('HSET', jobs, 'leaving', leader)
elseif job == '' then
  if order == 'Pause' then
    redis.call('HSET', jobs, 'paused', '1')
    redis.call('PERSIST', jobs)
  elseif redis.call('HDEL', jobs, 'paused') == 1 then
    for _, field in ipairs(redis.call('HKEYS', jobs)) do
      local name = string.match(field, '^at:(.*)$')
      if name then
        resume(name)
      end
    end
    expire()
  end
elseif not get(jobs, 'at', job) then
  return '0'
elseif order == 'Run' then
  set(jobs, 'wanted', job, text(millis()))
elseif order == 'Pause' then
  set(jobs, 'paused', job, '1')
  redis.call('PERSIST', jobs)
elseif order == 'Resume' then
  if clear(jobs, 'paused', job) then
    resume(job)
    expire()
  end
else
  change(jobs, 'override', job, schedule)
end
return '1'
