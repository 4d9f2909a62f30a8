--- Gives a period of scheduled work, or one instant of it, to the first that asks.
---
--- A period is kept as the instant at which it begins, so that a job whose period changes goes on. An instant that is
--- too far ahead of the server's time is refused: the clock of a node that is wrong must not use up what is to come.
---
--- KEYS[1] claimed  the period of this job that was claimed last
--- ARGV[1] period       length of a period in ms
--- ARGV[2] at           scheduled instant in ms, or '' for the time of the server
--- ARGV[3] onlyIfKnown  '1' refuses a job that has no claimed period, and notes it, else '0'
--- Reply: { '1' for the first and '0' for all others, ms until the next period }. For a scheduled instant the second is
---   '0', or the ms until it is no longer too far ahead.

local claimed = KEYS[1]
local period, at = tonumber(ARGV[1]), tonumber(ARGV[2])
local onlyIfKnown = ARGV[3] == '1'

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
-- More than clocks differ that are looked after
local tolerance = 10000
if at and at > now + tolerance then
  return { '0', string.format('%.0f', at - now - tolerance) }
end
local start = at or math.floor(now / period) * period
local before = redis.call('GET', claimed)
local last = tonumber(before or '-1') or -1
local later = start > last
if later then
  -- At least a day: longer than any two clocks that take part are apart
  local keep = math.max(2 * period, 86400000)
  redis.call('SET', claimed, string.format('%.0f', start), 'PX', string.format('%.0f', keep))
end
local first = later and (before or not onlyIfKnown)
return { first and '1' or '0', string.format('%.0f', at and 0 or start + period - now) }
