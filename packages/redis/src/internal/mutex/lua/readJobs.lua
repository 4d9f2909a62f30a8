--- Reads all of a mutex's jobs, and registers the jobs that the caller names.
---
--- Deletes jobs that no caller has named during their `keep` period, unless they or all jobs are paused.
---
--- KEYS[1] owner
--- KEYS[2] jobs
--- ARGV[1] id  the caller's id, or '' for a reader; only the owner's schedules are stored
--- ARGV[4n-2] job
--- ARGV[4n-1] schedule
--- ARGV[4n] every: ms | ''  the schedule's period
--- ARGV[4n+1] keep: ms
--- Reply: { now: Count, text[] }. The server's time in ms, and the hash's fields and values.

local owner, jobs = KEYS[1], KEYS[2]
local id = ARGV[1]

--- @include include/jobs.lua

local function forgetUnused()
  if redis.call('HEXISTS', jobs, 'paused') == 1 then
    return
  end
  local fields, over = redis.call('HGETALL', jobs), {}
  for i = 1, #fields, 2 do
    local job = string.match(fields[i], '^until:(.*)$')
    local til = job and count(fields[i + 1])
    if til and til < millis() and not get(jobs, 'paused', job) then
      over[job] = true
    end
  end
  for i = 1, #fields, 2 do
    local job = string.match(fields[i], '^%l+:(.*)$')
    if job and over[job] then
      redis.call('HDEL', jobs, fields[i])
    end
  end
end

-- Delete first, because a job that is named after its `keep` period starts as a new job
forgetUnused()
local current = redis.call('GET', owner)
for i = 2, #ARGV, 4 do
  local job, schedule, every, keep = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  if not get(jobs, 'at', job) then
    set(jobs, 'at', job, text(every and math.floor(millis() / every) * every - 1 or millis()))
  end
  local til = millis() + keep
  if til > (count(get(jobs, 'until', job)) or 0) then
    set(jobs, 'until', job, text(til))
  end
  if current and current == id and get(jobs, 'schedule', job) ~= schedule then
    change(jobs, 'schedule', job, schedule)
  end
end

local fields = redis.call('HGETALL', jobs)
local isPaused, latest = false, 0
for i = 1, #fields, 2 do
  local attribute = string.match(fields[i], '^(%l+):')
  isPaused = isPaused or fields[i] == 'paused' or attribute == 'paused'
  latest = math.max(latest, attribute == 'until' and count(fields[i + 1]) or 0)
end
if latest > 0 and not isPaused then
  redis.call('PEXPIREAT', jobs, text(latest))
end
return { text(millis()), fields }
