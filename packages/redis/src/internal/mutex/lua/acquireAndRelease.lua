--- Does any number of acquires and releases, in the order given. One that fails leaves the others alone.
---
--- An operation on the mutex of the one before it has no keys of its own.
---
--- KEYS[4n-3] owner
--- KEYS[4n-2] queue
--- KEYS[4n-1] fence
--- KEYS[4n] reserved
--- ARGV[1] codes         a letter for each operation, a capital where it has no keys of its own
--- ARGV[2] skipDead      '1' if dead waiters may be passed over
--- ARGV[3] plainLease    ms
--- ARGV[4] plainConfirm  ms
--- ARGV[5..] operands of each operation in turn, as below
--- Reply: for each operation what it replies, or { 'error', message }.
---
--- Operands by letter:
---   t  a plain try: wire id
---   a  any acquire: wire id, 'try' or 'wait', lease ms, confirm ms, ticket or '', unfair, how many tokens to reserve
---   r  a plain release: wire id
---   d  any release: wire id, confirm ms, unfair, wire id to queue or '', its lease ms, how many tokens it reserves
---
--- Acquire replies the token, or { ownership, ticket or '', position among ours, '1' if stock contenders take part }.
---   The mutex is free: grants it to the first live waiter ahead of the caller, else to the caller. An unfair caller goes
---   before all. The caller is the owner already: extends, with the same token and at least as many reserved. Otherwise
---   refuses, and in mode 'wait' queues the caller under its ticket.
---
--- Release replies the ownership afterwards; with an id to queue { ownership, its ticket, its token if granted or '' }.
---   The caller is the owner: hands the mutex to the first live waiter, or frees it; if unfair, frees it and tells the
---   first. Otherwise the caller leaves the queue, and if it was the first, the new first is told when to look. The id to
---   queue goes behind all who wait, and is granted the mutex where nobody is before it. Asked again, it keeps its place
---   or its grant.

local call, attempt, codes = redis.call, redis.pcall, ARGV[1]
local skipDead, plainLease, plainConfirm = ARGV[2] == '1', ARGV[3], ARGV[4]
local owner, queue, fence, reserved
local stamp, isMine, head
local try, perform

--- @include include/retention.lua

local replies, at, key = {}, 5, 1
for i = 1, #codes do
local code, first, reply = string.byte(codes, i), at, nil
if code < 97 then
  -- A capital letter: the mutex of the operation before
  code = code + 32
else
  owner, queue, fence, reserved = KEYS[key], KEYS[key + 1], KEYS[key + 2], KEYS[key + 3]
  key = key + 4
end

--- @include include/uncontended.lua

if not reply and not try then

--- @include include/contended.lua

try = function(code, first)
  if code == 114 then
    return isMine and pass(ARGV[first])
  elseif code == 97 and ARGV[first + 1] == 'wait' and ARGV[first + 4] == '' then
    return queueUp(ARGV[first], tonumber(ARGV[first + 2]), tonumber(ARGV[first + 3]))
  end
end

local made
perform = function(...)
if not made then

--- @include include/acquire.lua
--- @include include/release.lua

made = function(code, first)
  if code == 116 then
    return acquire(ARGV[first], 'try', plainLease, plainConfirm, nil, false, 0)
  elseif code == 114 then
    return release(ARGV[first], plainConfirm, false, '')
  elseif code == 97 then
    return acquire(ARGV[first], ARGV[first + 1], ARGV[first + 2], ARGV[first + 3], tonumber(ARGV[first + 4]),
      ARGV[first + 5] == '1', tonumber(ARGV[first + 6]))
  end
  return release(ARGV[first], ARGV[first + 1], ARGV[first + 2] == '1', ARGV[first + 3], ARGV[first + 4],
    tonumber(ARGV[first + 5]))
end
end
return made(...)
end
end

if not reply then
  local done
  done, reply = pcall(try, code, first)
  if done and not reply then
    done, reply = pcall(perform, code, first)
  end
  if not done then
    local text = type(reply) == 'table' and reply.err or tostring(reply)
    -- What ails the whole server is no matter of one operation: the client is to leave a replica
    if string.find(text, 'READONLY', 1, true) then
      return redis.error_reply(text)
    end
    reply = { 'error', text }
  end
end
replies[i] = reply
end
return replies
