/** The scripts of the `raw` contestant: a minimal lock, a queue with direct hand-over, and renewal. */

/** KEYS key. ARGV id, lease ms. */
export const take = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])"

/** KEYS key. ARGV id. */
export const drop = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

/**
 * KEYS key, queue. ARGV id, lease ms. Returns -1 if granted. Otherwise queues the id, and returns the milliseconds
 * until it should poll. The first waiter polls when the key expires, and each further waiter 10 ms after the one ahead
 * of it.
 */
export const enter = `
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  redis.call('ZREM', KEYS[2], ARGV[1])
  return -1
end
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return -1
end
redis.call('ZADD', KEYS[2], 'NX', redis.call('TIME')[1], ARGV[1])
return redis.call('PTTL', KEYS[1]) + 10 * redis.call('ZRANK', KEYS[2], ARGV[1])
`

/** KEYS key, queue. ARGV id, lease ms. Hands the lock to the first waiter, and notifies it. */
export const handOver = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
local next = redis.call('ZPOPMIN', KEYS[2])[1]
if next then
  redis.call('SET', KEYS[1], next, 'PX', ARGV[2])
  redis.call('PUBLISH', next, '1')
else
  redis.call('DEL', KEYS[1])
end
return 1
`

/** KEYS keys. ARGV lease ms, then the id of each key. Returns the indexes of the lost keys, from 1. */
export const renew = `
local lost = {}
for i, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[i + 1] then
    redis.call('PEXPIRE', key, ARGV[1])
  else
    lost[#lost + 1] = i
  end
end
return lost
`

/** KEYS keys. ARGV for each: 1 to take or 0 to drop, id, lease ms. */
export const several = `
local replies = {}
for i, key in ipairs(KEYS) do
  local id = ARGV[3 * i - 1]
  if ARGV[3 * i - 2] == '1' then
    replies[i] = redis.call('SET', key, id, 'NX', 'PX', ARGV[3 * i]) and 1 or 0
  elseif redis.call('GET', key) == id then
    replies[i] = redis.call('DEL', key)
  else
    replies[i] = 0
  end
end
return replies
`
