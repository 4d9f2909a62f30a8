--- Acquires, confirms, releases and inspects, any number in the order given. One that fails leaves the others alone.
---
--- What is free and awaited by nobody is decided here. Else `acquire.lua`, `confirm.lua` and `release.lua` of `include`
--- decide, and `inspect.lua` reads. Their functions are defined where they are first needed: to define them costs as
--- much as an acquire and its release.
---
--- An operation on the same mutex as the one before it has no keys of its own.
---
--- KEYS[4n-3] owner
--- KEYS[4n-2] queue
--- KEYS[4n-1] fence
--- KEYS[4n] reserved
--- ARGV[1] codes  a letter for each operation, a capital where it has no keys of its own
--- ARGV[2] skipDead: '1' | 'own' | '0'  which dead waiters to skip: all, those of effect-simba, or none
--- ARGV[3] plainLease  ms
--- ARGV[4] plainConfirm  ms
--- ARGV[5..] operands  of each operation in turn, as below
--- Reply: any[]. The reply of each operation, or { 'error', message }.
---
--- Operation t: id  a plain try
--- Operation w: id  a plain acquire that queues, without a ticket
--- Operation a: id, mode, lease, confirm, ticket  any acquire: 'try' or 'wait', ms, ms, or '' without a ticket
--- Operation c: id, token, lease  a confirmation of a grant
--- Operation r: id  a plain release
--- Operation q: id, requeue  a plain release that queues another id
--- Operation d: id, confirm, lease, requeue, requeueLease  any release: an id to queue or '', its lease
--- Operation i: limit  an inspection: how many waiters to name

local codes, skipDead, plainLease, plainConfirm = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
skipDead = skipDead ~= '0' and skipDead
local owner, queue, fence, reserved

--- @include include/own.lua

local operate
local replies, key, at = {}, 1, 5
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
    reply = '@@'
  elseif (code == 't' or code == 'w') and not current and redis.call('EXISTS', queue, reserved) == 0 then
    done, reply = pcall(own, id, plainLease)
  else
    if not operate then

      --- @include include/acquire.lua
      --- @include include/release.lua

      operate = function(code, id, current, at)
        if code == 't' then
          return acquire(id, current, 'try', plainLease, plainConfirm)
        elseif code == 'w' then
          return acquire(id, current, 'wait', plainLease, plainConfirm)
        elseif code == 'a' then
          local mode, lease, confirm, ticket = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], tonumber(ARGV[at + 4])
          return acquire(id, current, mode, lease, confirm, ticket)
        elseif code == 'c' then

          --- @include include/confirm.lua

          return confirmGrant(id, current, ARGV[at + 1], ARGV[at + 2])
        elseif code == 'r' then
          return release(id, current, plainConfirm, plainLease, '')
        elseif code == 'q' then
          return release(id, current, plainConfirm, plainLease, ARGV[at + 1], plainLease)
        elseif code == 'i' then

          --- @include include/inspect.lua

          return inspect(current, tonumber(id))
        end
        local confirm, lease, nextId = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
        return release(id, current, confirm, lease, nextId, ARGV[at + 4])
      end
    end
    if type(current) == 'table' then
      done, reply = false, current
    else
      done, reply = pcall(operate, code, id, current, at)
    end
  end
  if not done then
    local text = type(reply) == 'table' and reply.err or tostring(reply)
    -- Not a matter of one operation: the client is to leave a replica
    if string.find(text, 'READONLY', 1, true) then
      return redis.error_reply(text)
    end
    reply = { 'error', text }
  end
  replies[i] = reply
  at = at + ((code == 'a' or code == 'd') and 5 or code == 'c' and 3 or code == 'q' and 2 or 1)
end
return replies
