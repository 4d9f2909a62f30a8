--- Sends a waiter a message: through the inbox of its layer, or on the channel of a Simba waiter.
--- A layer knows its waiters by the counters of their ids.

local function notify(owner, id, inbox, message)
  if inbox then
    redis.call('PUBLISH', inbox, string.match(id, '^%d+') .. '@@' .. message)
  else
    redis.call('PUBLISH', owner .. ':' .. id, message)
  end
end
