--- Grants the mutex's owner one run of a job, or records missed runs.
---
--- If the reply is lost, the caller repeats the request with the same claim. An owner is refused if its token is
--- smaller than the last run's.
---
--- KEYS[1] owner
--- KEYS[2] jobs
--- ARGV[1] id  the caller's lease id
--- ARGV[2] token: number  the caller's token
--- ARGV[3] job
--- ARGV[4] claim  unique to the run
--- ARGV[5] mode: 'run' | 'manual' | 'miss'
--- ARGV[6] at: ms  the scheduled time of the run
--- ARGV[7] missed: number  how many runs this call skips
--- ARGV[8] cause  why they were missed
--- ARGV[9] minInterval: ms  minimum time between the starts of runs
--- ARGV[10] attempts: number  maximum number of runs for one scheduled time
--- ARGV[11] changed: ms  the last schedule change known to the caller, or 0
--- ARGV[12] after: ms  the last settled time known to the caller
--- Reply: { 'Claimed' | 'NotOwner' | 'Taken' | 'Running' | 'Paused' | 'Early', now: Count, attempt: Count, wait: Count
---   }. The server's time and the time to wait, in ms.

local owner, jobs = KEYS[1], KEYS[2]
local id, token, job, claim, mode = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local at, missed, cause = tonumber(ARGV[6]), ARGV[7], ARGV[8]
local minInterval, attempts, changed = tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[11]
local after = tonumber(ARGV[12])

--- @include include/jobs.lua

local function reply(result, attempt, wait)
  return { result, text(millis()), text(attempt or 0), text(wait or 0) }
end

local last = tonumber(get(jobs, 'token', job) or '0')
if redis.call('GET', owner) ~= id or last > tonumber(token) then
  return reply('NotOwner')
end
local start, ended = tonumber(get(jobs, 'start', job)), get(jobs, 'end', job)
local before = tonumber(get(jobs, 'attempt', job) or '0')
if get(jobs, 'claim', job) == claim then
  -- If this run has already ended, the request is a late copy of the one that started it
  return ended and reply('Taken') or reply('Claimed', before)
end
if start and not ended and last == tonumber(token) then
  return reply('Running')
end

local attempt = 1
if mode == 'manual' then
  if tonumber(get(jobs, 'wanted', job)) ~= at then
    return reply('Taken')
  end
else
  if (string.match(get(jobs, 'replaced', job) or '', '(%d+) [^\n]+$') or '0') ~= changed then
    return reply('Taken')
  end
  if at > millis() then
    return reply('Early', 0, at - millis())
  end
  local isRepeated = mode == 'run' and tonumber(get(jobs, 'scheduled', job)) == at
    and get(jobs, 'outcome', job) ~= 'success' and before < attempts
  -- Otherwise, runs that an earlier request has counted as missed would be counted again
  if tonumber(get(jobs, 'at', job)) ~= after or at < after or (at == after and not isRepeated) then
    return reply('Taken')
  end
  attempt = isRepeated and before + 1 or 1
  if mode == 'run' and (redis.call('HEXISTS', jobs, 'paused') == 1 or get(jobs, 'paused', job)) then
    return reply('Paused')
  end
end
local since = start and get(jobs, 'outcome', job) ~= 'unstarted' and millis() - start
if mode ~= 'miss' and since and since >= 0 and since < minInterval then
  return reply('Early', 0, minInterval - since)
end

if missed ~= '0' then
  redis.call('HINCRBY', jobs, 'missed:' .. job, missed)
  set(jobs, 'cause', job, cause)
end
if mode ~= 'manual' then
  set(jobs, 'at', job, text(at))
end
if mode == 'miss' then
  return reply('Claimed')
end
if mode == 'manual' then
  clear(jobs, 'wanted', job)
  set(jobs, 'requested', job, text(at))
else
  clear(jobs, 'requested', job)
end
set(jobs, 'run', job, id)
set(jobs, 'claim', job, claim)
set(jobs, 'token', job, token)
set(jobs, 'scheduled', job, text(at))
set(jobs, 'attempt', job, text(attempt))
set(jobs, 'start', job, text(millis()))
clear(jobs, 'end', job)
clear(jobs, 'outcome', job)
return reply('Claimed', attempt)
