--- Records how a run ended. Does nothing if another run has started.
---
--- KEYS[1] jobs
--- ARGV[1] job
--- ARGV[2] claim  unique to the run
--- ARGV[3] outcome  'unstarted' undoes the attempt, and restores the request for a manual run
--- Reply: Count. The server's time in ms.

local jobs = KEYS[1]
local job, claim, outcome = ARGV[1], ARGV[2], ARGV[3]

--- @include include/jobs.lua

if get(jobs, 'claim', job) == claim and not get(jobs, 'end', job) then
  set(jobs, 'end', job, text(millis()))
  set(jobs, 'outcome', job, outcome)
  if outcome == 'success' then
    set(jobs, 'success', job, text(millis()))
  elseif outcome == 'unstarted' then
    redis.call('HINCRBY', jobs, 'attempt:' .. job, -1)
    local requested = get(jobs, 'requested', job)
    if requested and not get(jobs, 'wanted', job) then
      set(jobs, 'wanted', job, requested)
    end
  end
end
return text(millis())
