--- Runs any number of acquires, confirmations, releases and inspections, in order.
---
--- If one operation fails, the others still run.
---
--- If the mutex is free and nobody is waiting for it, a few commands in this file are enough. The files in `include`
--- handle all other cases. Each is included in the branch that needs it, because defining a function takes about an
--- eighth as long as a `GET`.
---
--- An operation on the same mutex as the previous operation does not repeat its keys.
---
--- KEYS[4n-3] owner
--- KEYS[4n-2] queue
--- KEYS[4n-1] fence
--- KEYS[4n] reserved
--- ARGV[1] header  `<codes> <skip dead> <lease> <confirm>`: one letter per operation, in upper case if it reuses the
---   previous keys; the dead waiters to skip: `1` all, `own` only effect-simba's, `0` none; ms for plain operations
--- ARGV[2..] operands  for all operations, in order, as below
--- Reply: any. A list with the reply to each operation, or { 'error', message }. A single operation's reply is not in
---   a list, because Redis converts lists slowly.
---
--- Operation t: id  a plain try-acquire
--- Operation w: id  a plain acquire that queues, without a ticket
--- Operation a: id, mode, lease, confirm, ticket  any acquire: 'try' or 'wait', two durations in ms, and '' without a
---   ticket
--- Operation c: id, token, lease  a confirmation of a grant
--- Operation r: id  a plain release
--- Operation q: id, requeue  a plain release that queues another id
--- Operation d: id, confirm, lease, requeue, requeueLease  any release, with an id to queue (or '') and its lease
--- Operation i: limit  an inspection, with the maximum number of waiters to return

local header = ARGV[1]
local codes, skipDead, plainLease, plainConfirm = string.match(header, '^(%a+) (%w+) (%d*) (%d*)$')
local owner, queue, fence, reserved
local ownFree, operate

local replies, key, at = {}, 1, 2
for i = 1, #codes do
  local letter = string.sub(codes, i, i)
  local code = string.lower(letter)
  if code == letter then
    owner, queue, fence, reserved = KEYS[key], KEYS[key + 1], KEYS[key + 2], KEYS[key + 3]
    key = key + 4
  end
  local id = ARGV[at]
  local current = redis.pcall('GET', owner)
  local done, reply = true, nil
  if code == 'r' and current == id and redis.call('EXISTS', queue) == 0 then
    redis.call('DEL', owner)
    reply = 1
  elseif (code == 't' or code == 'w') and not current and redis.call('EXISTS', queue, reserved) == 0 then
    if not ownFree then

      --- @include include/newOwner.lua

      ownFree = own
    end
    done, reply = pcall(ownFree, owner, fence, id, plainLease)
  elseif type(current) == 'table' then
    done, reply = false, current
  else
    operate = operate or function(mutex, code, id, current, at, lease, confirm)
      if code == 'c' then

        --- @include include/confirm.lua

        return confirmGrant(mutex, id, current, ARGV[at + 1], ARGV[at + 2])
      elseif code == 'i' then

        --- @include include/inspect.lua

        return inspect(mutex, current, tonumber(id))
      elseif code == 't' or code == 'w' or code == 'a' then
        local mode, ticket = code == 'w' and 'wait' or 'try', nil
        if code == 'a' then
          mode, lease, confirm, ticket = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], tonumber(ARGV[at + 4])
        end

        --- @include include/acquire.lua

        return acquire(mutex, id, current, mode, lease, confirm, ticket)
      end
      local nextId, nextLease = '', lease
      if code == 'q' then
        nextId = ARGV[at + 1]
      elseif code == 'd' then
        confirm, lease, nextId, nextLease = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
      end
      if nextId ~= '' then

        --- @include include/requeue.lua

        return requeue(mutex, id, current, confirm, lease, nextId, nextLease)
      end

      --- @include include/release.lua

      release(mutex, id, current, confirm, lease)
      return 1
    end
    local mutex = {
      owner = owner, queue = queue, fence = fence, reserved = reserved, skipDead = skipDead ~= '0' and skipDead
    }
    done, reply = pcall(operate, mutex, code, id, current, at, plainLease, plainConfirm)
  end
  if not done then
    local text = type(reply) == 'table' and reply.err or tostring(reply)
    -- The server is a replica. Fail the whole call, because the client must disconnect from it
    if string.find(text, 'READONLY', 1, true) then
      return redis.error_reply(text)
    end
    reply = { 'error', text }
  end
  if #codes == 1 then
    return reply
  end
  replies[i] = reply
  at = at + ((code == 'a' or code == 'd') and 5 or code == 'c' and 3 or code == 'q' and 2 or 1)
end
return replies
