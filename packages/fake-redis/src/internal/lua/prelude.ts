/**
 * Lua code that makes plain Lua 5.1 behave like the Lua in Redis 7.0. It removes libraries, freezes tables with proxies
 * (plain Lua has no read-only tables), makes `pcall` return an error's text, and records where an error happened. It
 * receives the host's functions as arguments. It returns the error handlers, the globals and their proxy, and the
 * functions that load libraries and invoke their callbacks.
 */
export const PRELUDE = `
local host, call, pcallRedis, misc = ...
local G = _G
local type, error, rawpcall, tostring, select = type, error, pcall, tostring, select
local rawset_, rawget_, setmetatable_, getinfo, setfenv_ = rawset, rawget, setmetatable, debug.getinfo, setfenv
local ipairs_ = ipairs

for _, name in ipairs_({ "os", "io", "debug", "package", "require", "module", "print", "dofile", "loadfile", "newproxy",
  "getfenv", "setfenv" }) do G[name] = nil end

local function fix(ok, ...)
  if ok then return true, ... end
  local e = ...
  if type(e) == "table" and type(e.err) == "string" then return false, e.err end
  return false, e
end
local function leave(...)
  misc("leave")
  return ...
end
G.pcall = function(...)
  misc("enter")
  return leave(fix(rawpcall(...)))
end

string.format = host.format
math.random, math.randomseed = host.random, host.randomseed
G.tonumber = host.tonumber
G.bit = host.bit

G.cjson = {
  encode = host.encode, decode = host.decode, null = host.null, _NAME = "cjson", _VERSION = "2.1.0",
  encode_keep_buffer = function() return true end, encode_max_depth = host.encode_max_depth,
  decode_max_depth = host.decode_max_depth, encode_number_precision = host.encode_number_precision,
  encode_sparse_array = host.encode_sparse_array, encode_invalid_numbers = host.encode_invalid_numbers,
  decode_invalid_numbers = host.decode_invalid_numbers
}

G.cmsgpack = {
  pack = host.pack, unpack = host.unpack, unpack_one = host.unpackOne, unpack_limit = host.unpackLimit,
  _NAME = "cmsgpack", _VERSION = "lua-cmsgpack 0.4.0", _COPYRIGHT = "", _DESCRIPTION = "MessagePack C implementation for Lua"
}
G.struct = { pack = host.structPack, unpack = host.structUnpack, size = host.structSize }

local function single(field)
  return function(...)
    local text = ...
    if select("#", ...) ~= 1 or type(text) ~= "string" then
      return { err = "ERR wrong number or type of arguments" }
    end
    if field == "ok" then return { ok = text } end
    text = misc("errtext", text)
    return { err = text }
  end
end
G.redis = {
  call = call, pcall = pcallRedis, status_reply = single("ok"), error_reply = single("err"),
  sha1hex = host.sha1hex, log = host.log, setresp = host.setresp, set_repl = host.set_repl,
  replicate_commands = function() return true end,
  breakpoint = function() return false end,
  debug = function() end,
  acl_check_cmd = host.acl_check_cmd,
  LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
  REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3,
  REDIS_VERSION = "7.0.15", REDIS_VERSION_NUM = 458767
}

local READONLY = "Attempt to modify a readonly table"
local frozen = setmetatable_({}, { __mode = "k" })
local function deny() error(READONLY, 2) end
local sealed = setmetatable_({}, { __newindex = deny })
frozen[sealed] = true
local function freeze(real, index)
  local proxy = setmetatable_({}, { __index = index or real, __newindex = deny, __metatable = sealed })
  frozen[proxy] = true
  return proxy
end
G.rawset = function(t, k, v)
  if frozen[t] then error({ err = "ERR " .. READONLY }, 0) end
  return rawset_(t, k, v)
end
G.setmetatable = function(t, m)
  if frozen[t] then error({ err = "ERR " .. READONLY }, 0) end
  return setmetatable_(t, m)
end
-- Functions have no debugger and no replication
local redisOfFunctions = {}
for name, value in pairs(G.redis) do
  if name ~= "breakpoint" and name ~= "debug" and name ~= "replicate_commands" then redisOfFunctions[name] = value end
end
redisOfFunctions = freeze(redisOfFunctions)
for _, name in ipairs_({ "string", "table", "math", "coroutine", "redis", "cjson", "bit",
  "cmsgpack", "struct" }) do
  G[name] = freeze(G[name])
end

-- String methods: scripts can read this metatable, but cannot change it
local strings = getmetatable("")
strings.__metatable = freeze({ __index = G.string })

-- For use in __index
local function missing(name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 3)
end
setmetatable_(G, { __index = function(_, name) missing(name) end })
local proxy = freeze(G)
G._G = proxy

local callbacks = {}
local FLAGS = {
  ["no-writes"] = true, ["allow-oom"] = true, ["allow-stale"] = true, ["no-cluster"] = true,
  ["allow-cross-slot-keys"] = true
}
local function refuse(text) error({ err = "ERR " .. text }, 0) end
local function named(given)
  local known = { flags = "" }
  for key, value in pairs(given) do
    if type(key) ~= "string" then
      refuse("named argument key given to redis.register_function is not a string")
    elseif key == "function_name" then
      if type(value) ~= "string" then
        refuse("function_name argument given to redis.register_function must be a string")
      end
      known.name = value
    elseif key == "description" then
      if type(value) ~= "string" then
        refuse("description argument given to redis.register_function must be a string")
      end
      known.description = value
    elseif key == "callback" then
      if type(value) ~= "function" then
        refuse("callback argument given to redis.register_function must be a function")
      end
      known.callback = value
    elseif key == "flags" then
      if type(value) ~= "table" then
        refuse("flags argument to redis.register_function must be a table representing function flags")
      end
      for _, flag in ipairs_(value) do
        if not FLAGS[flag] then refuse("unknown flag given") end
        known.flags = known.flags .. " " .. flag
      end
    else
      refuse("unknown argument given to redis.register_function")
    end
  end
  if not known.name then refuse("redis.register_function must get a function name argument") end
  if not known.callback then refuse("redis.register_function must get a callback argument") end
  return known
end
local function register(...)
  local count, first, second = select("#", ...), ...
  local given
  if count == 1 then
    if type(first) ~= "table" then
      refuse("calling redis.register_function with a single argument is only applicable to Lua table (representing " ..
        "named arguments).")
    end
    given = named(first)
  elseif count == 2 then
    if type(first) == "number" then first = tostring(first) end
    if type(first) ~= "string" then refuse("first argument to redis.register_function must be a string") end
    if type(second) ~= "function" then refuse("second argument to redis.register_function must be a function") end
    given = { name = first, callback = second, flags = "" }
  else
    refuse("wrong number of arguments to redis.register_function")
  end
  local id, problem = misc("register", given.name, given.flags, given.description or false)
  if problem then refuse(problem) end
  callbacks[id] = given.callback
end

-- While a library loads, it sees only this part of redis
local loaded = { register_function = register, log = host.log }
for _, name in ipairs_({ "LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING", "REDIS_VERSION",
  "REDIS_VERSION_NUM" }) do
  loaded[name] = G.redis[name]
end
local loader = freeze(setmetatable_(loaded, { __index = function(_, name) missing(name) end }))
local function loadLibrary(chunk)
  local isLoading = true
  setfenv_(chunk, freeze(G, function(_, name)
    if name == "redis" then return isLoading and loader or redisOfFunctions end
    local value
    if not isLoading and name ~= "KEYS" and name ~= "ARGV" then value = rawget_(G, name) end
    if value == nil then missing(name) end
    return value
  end))
  chunk()
  isLoading = false
end
local function invoke(id, keys, argv) return callbacks[id](keys, argv) end

local function where(e, info)
  if type(e) ~= "table" then e = { err = "ERR " .. tostring(e) } end
  if info then
    e.source = info.source
    e.line = info.currentline
  end
  return e
end
local function isInner(info) return info.what == "C" or info.what == "tail" or info.source == "@prelude" end
local function handler(e)
  local level = 2
  local info = getinfo(level, "nSl")
  while info and isInner(info) do
    level = level + 1
    info = getinfo(level, "nSl")
  end
  return where(e, info)
end
local function trace(thread, e)
  local level = 0
  local info = getinfo(thread, level, "nSl")
  while info and isInner(info) do
    level = level + 1
    info = getinfo(thread, level, "nSl")
  end
  return where(e, info)
end
G.__redis__err__handler = handler

return handler, G, loadLibrary, invoke, trace, proxy
`
