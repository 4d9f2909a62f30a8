--- Ends an entry: acknowledges and deletes it, with all that is known about it.
--- Needs input, failures, announced, group.
--- @include announcement.lua

local function remove(stream, entry)
  redis.call('XACK', input, group, entry)
  local count = redis.call('XDEL', input, entry)
  redis.call('HDEL', failures, entry, entry .. ':busy', entry .. ':last', entry .. ':yielded')
  if stream ~= '' and announcementOf(stream) == entry then
    redis.call('HDEL', announced, stream)
  end
  return count
end
