--- Sends a waiter a message.
--- Needs owner.

local function notify(id, inbox, message)
  if inbox then
    redis.call('PUBLISH', inbox, id .. '@@' .. message)
  else
    redis.call('PUBLISH', owner .. ':' .. id, message)
  end
end
